package actors

import (
	"errors"
	"reflect"
	"runtime"
)

// ErrInTurn: a Close was called in a turn of an actor, as by a handler, and so does
// not wait: it might wait for that turn. What it has begun goes on.
var ErrInTurn = errors.New("called in a turn of an actor, such as a handler, for which it might wait: call it in another goroutine to wait")

// turnFunc is the name of the function that runs every turn.
var turnFunc = runtime.FuncForPC(reflect.ValueOf((*mailbox).RunTurn).Pointer()).Name()

// InTurn reports whether it is called in a turn of an actor, of any system: what
// waits for turns to end must not wait there. A goroutine that a turn has started is
// not in the turn. It looks through the goroutine's stack, which takes
// microseconds.
func InTurn() bool {
	pcs := make([]uintptr, 64)
	for {
		n := runtime.Callers(2, pcs)
		if n == len(pcs) {
			pcs = make([]uintptr, 4*len(pcs))
			continue
		}
		frames := runtime.CallersFrames(pcs[:n])
		for {
			frame, more := frames.Next()
			if frame.Function == turnFunc {
				return true
			}
			if !more {
				return false
			}
		}
	}
}
