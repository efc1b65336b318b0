package informer

import (
	"reflect"
	"runtime"

	"github.com/watchmill/watchmill/store/backend"
)

// contained calls f, which runs a function of the configuration, and returns a
// panic in it as a [*backend.PanicError].
func contained(what, key string, f func()) error {
	return backend.Contain(what, key, func() { callback(f) })
}

// callback runs f, which calls what is the user's. Whoever is called from there can be
// told from others by the stack.
//
//go:noinline
func callback(f func()) { f() }

// callbackName is the name of callback on the stack.
var callbackName = runtime.FuncForPC(reflect.ValueOf(callback).Pointer()).Name()

// inCallback reports whether the caller was called by a handler, or a function of
// the configuration, of any informer: it must not wait for an end then, for that
// one would not return.
//
// Go has no other way to tell. It costs some microseconds, in calls that are
// about to wait anyway.
func inCallback() bool {
	counters := make([]uintptr, 64)
	for skip := 0; ; skip += len(counters) {
		found := runtime.Callers(skip, counters)
		frames := runtime.CallersFrames(counters[:found])
		for more := found > 0; more; {
			var frame runtime.Frame
			if frame, more = frames.Next(); frame.Function == callbackName {
				return true
			}
		}
		if found < len(counters) {
			return false
		}
	}
}
