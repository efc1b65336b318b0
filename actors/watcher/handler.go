package watcher

import (
	"runtime/debug"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// quantum is how many events a handler gets in one turn before the worker runs
// other actors: some tens of microseconds of a handler that only counts.
const quantum = 4096

// handler is a watch with a handler function: an actor, a child of the dispatcher,
// in one allocation with its watch and its mailbox.
type handler struct {
	Watch
	box      actors.WakeBox
	handle   func(*Delivery)
	delivery Delivery
}

// Delivery is a batch of events for a handler, which iterates over it:
//
//	for i, ev := range d.Events() {
//		if !d.Begin(i) {
//			return
//		}
//		handle(ev)
//	}
//
// So a handler of typed events converts a whole batch at once, and the loop calls
// nothing but the handler. It has only the progress of its watch, since user packages
// compile everything that they can reach from here.
type Delivery struct {
	batch []store.Event
	of    *progress
}

// progress is how far the handler of a watch is, and whether the watch has ended.
type progress struct {
	flags flags
	// begun is how many events of its batch the handler has begun. For a pulled watch it is how many
	// events the batch of the loop has that reads it, zero without one. It belongs to the consumer.
	begun uint32
}

// Events returns the batch. It is shared: read it, do not change it.
func (d *Delivery) Events() []store.Event { return d.batch }

// Begin records that the handler begins event i, and so that it has handled those before.
// It reports false if the watch has ended: then the handler must not get the event.
func (d *Delivery) Begin(i int) bool {
	if d.of.flags.has(ended) {
		return false
	}
	d.of.begun = uint32(i + 1)
	return true
}

// NewHandled makes a watch that reads feed and calls handle with its events, in
// order.
func NewHandled(feed *Feed, options Options, handle func(*Delivery)) *Watch {
	h := &handler{handle: handle}
	h.prepare(feed, options)
	h.target, h.delivery.of = h, &h.progress
	h.kind.Store(int32(byHandler))
	return &h.Watch
}

// handling reports whether the watch has a handler that is running.
func (w *Watch) handling() bool {
	return consumerKind(w.kind.Load()) == byHandler && w.target.(*handler).box.Running()
}

// signal schedules the actor's turn.
func (h *handler) signal() { h.box.Wake() }

// Woken is the actor's turn.
func (h *handler) Woken(*actors.Context) (again bool) {
	done := false
	defer h.endUnless(&done)
	again = h.turn()
	done = true
	return again
}

// turn gives the handler the pending events, up to a quantum, or until more than a step is needed
// to find the next.
func (h *handler) turn() (again bool) {
	for given := 0; given < quantum; {
		events, rest, err := h.takeStep()
		if rest != nil {
			rest()
			return true
		}
		if err != nil || len(events) == 0 {
			return false
		}
		if panicked := h.give(events); panicked != nil {
			panic(&EndError{h.name, panicked}) // the dispatcher, the supervisor, removes the watch
		}
		if rest := events[h.begun:]; len(rest) > 0 {
			h.hold(rest) // until the handler has had its pause, unless the watch has ended
			return false
		}
		given += len(events)
	}
	return true
}

// Stopped tells the dispatcher that the actor has stopped.
func (h *handler) Stopped(*actors.Context) {
	h.Watch.end(ErrEngineClosed) // no effect unless the actor was stopped from above
	h.mu.Lock()
	h.setSilent()
	h.mu.Unlock()
	h.feed.Registry.actorStopped(&h.Watch)
	h.feed.ended(&h.Watch)
}

// give calls the handler with the events. If it panics, or ends its goroutine as
// t.FailNow does, the watch ends with a PanicError.
func (h *handler) give(events []store.Event) (panicked *PanicError) {
	done := false
	d := &h.delivery
	d.batch, h.begun = events, 0
	defer func() {
		d.batch = nil
		if done {
			h.passedAll(events, int(h.begun))
			return
		}
		handled := int(h.begun) - 1
		h.passedAll(events, handled)
		value := valueOf(recover())
		ev := events[handled]
		panicked = &PanicError{Revision: ev.Revision, Key: ev.Key(), Value: value, Stack: debug.Stack()}
		h.Watch.end(panicked)
	}()
	h.handle(d)
	done = true
	return nil
}

// endUnless must be deferred around a function that takes events and gives them to the consumer, and sets
// done. If that does not return, as when Metrics end the goroutine, the events that it has taken are lost.
// So the watch ends as if its handler had panicked.
func (w *Watch) endUnless(done *bool) {
	if *done || w.flags.has(ended) {
		return
	}
	value := recover()
	w.end(&PanicError{Value: valueOf(value), Stack: debug.Stack()})
	if value != nil {
		panic(value)
	}
}

// valueOf returns the value of a panic. If recover has returned nil, the goroutine is ending, and
// goes on to do so.
func valueOf(recovered any) any {
	if recovered == nil {
		return usercode.ErrGoexit
	}
	return recovered
}
