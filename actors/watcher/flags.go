package watcher

import "sync/atomic"

// traits are the boolean options, in a byte.
type traits uint8

const (
	bookmarks traits = 1 << iota
	progressed
	onPool
)

func traitsOf(o Options) (t traits) {
	if o.Bookmarks {
		t |= bookmarks
	}
	if o.Progress {
		t |= progressed
	}
	if o.OnPool {
		t |= onPool
	}
	return t
}

func (t traits) has(u traits) bool { return t&u != 0 }

// flag is one of a watch's flags.
type flag uint32

const (
	// ended: the watch has ended.
	ended flag = 1 << iota
	// silent: the watch has ended and its handler is not called again.
	silent
	// waiting: the watch has caught up and its consumer asks for more.
	waiting
	// stalled: the watch lagged more than its buffer and has not caught up since.
	stalled
	// bookmarkDue: a bookmark was requested and has not been delivered.
	bookmarkDue
	// emptyHanded: the consumer was found to have nothing in hand, and has taken nothing since.
	emptyHanded
	// untold: the consumer may resume from a later revision than the last event or bookmark
	// has told it. Only with the option Progress.
	untold
)

// flags is a set of flags, each set and cleared atomically.
type flags struct{ bits atomic.Uint32 }

func (f *flags) has(g flag) bool { return f.bits.Load()&uint32(g) != 0 }

func (f *flags) set(g flag) { f.bits.Or(uint32(g)) }

// clear clears the flags and reports whether one was set. If not, it costs only a read.
func (f *flags) clear(g flag) bool { return f.has(g) && f.bits.And(^uint32(g))&uint32(g) != 0 }
