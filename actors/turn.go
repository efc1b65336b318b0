package actors

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
)

// ErrInTurn: a Close was called in a turn of an actor, for example by a handler, or in a function
// that the pool calls outside turns, such as OnFailure. It does not wait, since it might wait for
// that call, but closing goes on.
var ErrInTurn = errors.New("called in a turn of an actor, such as a handler, for which it might wait: call it in another goroutine to wait")

// awaited are the names of the functions that call user code while Close may wait for them: they
// run turns, or report by OnFailure what fails or holds a worker of a pool.
var awaited = []string{
	nameOf((*mailbox).RunTurn), nameOf((*worker).run), nameOf((*Pool).ask), nameOf((*Pool).check), nameOf((*Pool).stopWatchdog),
}

func nameOf(function any) string {
	return runtime.FuncForPC(reflect.ValueOf(function).Pointer()).Name()
}

// InTurn reports whether it is called in a turn of an actor, of any system, or in a function that
// a pool calls outside turns, such as OnFailure: a call that waits for turns to end must not wait
// there. A goroutine that a turn has started is not in the turn. It looks through the goroutine's
// stack, which takes microseconds.
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
			if slices.Contains(awaited, frame.Function) {
				return true
			}
			if !more {
				return false
			}
		}
	}
}
