package watcher

import "sync/atomic"

// flag is one of a watch's flags.
type flag uint32

const (
	// stalled: the dispatcher has called the watch stalled, and it has not caught
	// up since.
	stalled flag = 1 << iota
	// bookmarkDue: a bookmark was asked for and has not been delivered.
	bookmarkDue
)

// flags are several that change rarely, in the space of one.
type flags struct{ bits atomic.Uint32 }

func (f *flags) has(g flag) bool { return f.bits.Load()&uint32(g) != 0 }

// set reports whether the flag was not set before.
func (f *flags) set(g flag) bool { return f.bits.Or(uint32(g))&uint32(g) == 0 }

// clear reports whether the flag was set. Where it is not, it costs a read.
func (f *flags) clear(g flag) bool { return f.has(g) && f.bits.And(^uint32(g))&uint32(g) != 0 }
