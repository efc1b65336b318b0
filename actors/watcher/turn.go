package watcher

import (
	"runtime/debug"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
)

// quantum is how many events a handler is given in one turn before the worker
// goes to others: some tens of microseconds of a handler that only counts.
const quantum = 4096

// Woken is the watcher's turn. A pulled watch has its consumer look; a handler
// is given what there is, up to a quantum.
func (w *Watch) Woken(*actors.Context) (again bool) {
	if w.handler == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.signal()
		return false
	}
	for given := 0; given < quantum; {
		events, err := w.take()
		if err != nil || len(events) == 0 {
			return false
		}
		if panicked := w.handle(events); panicked != nil {
			panic(panicked) // the dispatcher, which supervises us, forgets us
		}
		given += len(events)
	}
	return true
}

// handle gives the events to the handler. If that panics, or ends its goroutine
// as t.FailNow does, the watch ends with what happened.
func (w *Watch) handle(events []store.Event) (panicked *PanicError) {
	handled, whole := 0, false
	defer func() {
		w.passedAll(events, handled)
		if whole {
			return
		}
		value := recover()
		if value == nil {
			value = actors.ErrGoexit // goes on when this returns
		}
		ev := events[handled]
		panicked = &PanicError{Revision: ev.Revision, Key: ev.Key(), Value: value, Stack: debug.Stack()}
		w.Finish(panicked)
	}()
	for handled < len(events) && !w.ended.Load() {
		w.handler(events[handled])
		handled++
	}
	whole = true
	return nil
}
