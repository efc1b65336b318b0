package load

import (
	"bytes"
	"runtime"
)

// goroutines is a set of goroutines, by their numbers, which are never given twice.
type goroutines map[string]bool

// allGoroutines returns those of the program, without those that have ended and without
// those in which the runtime runs finalizers and cleanups, which come and go with
// collections. [runtime.NumGoroutine] counts the former until their threads have freed
// them, which may be late on a busy machine, and cannot tell a goroutine that began from
// one that ended.
func allGoroutines() goroutines {
	for room := 1 << 18; ; room *= 2 {
		stacks := make([]byte, room)
		if n := runtime.Stack(stacks, true); n < room {
			return goroutinesIn(stacks[:n])
		}
	}
}

// goroutinesIn returns those of the stacks that [runtime.Stack] has written.
func goroutinesIn(stacks []byte) goroutines {
	all := goroutines{}
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if bytes.Contains(stack, []byte("\nruntime.runFinalizers(")) || bytes.Contains(stack, []byte("\nruntime.runCleanups(")) {
			continue
		}
		title, _, _ := bytes.Cut(stack, []byte(" ["))
		all[string(title)] = true
	}
	return all
}
