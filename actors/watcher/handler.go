package watcher

import (
	"runtime/debug"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
)

// quantum is how many events a handler is given in one turn before the worker
// goes to others: some tens of microseconds of a handler that only counts.
const quantum = 4096

// handler is a watch whose events are given to a function: an actor, a child of
// the dispatcher. It is one allocation with its watch and its mailbox.
type handler struct {
	Watch
	box      actors.WakeBox
	handle   func(*Delivery)
	delivery Delivery
}

// Delivery is a batch of events on its way to a handler, which takes one after
// the other until there is none left:
//
//	events := d.Events()
//	for i, ok := d.Next(); ok; i, ok = d.Next() {
//		handle(events[i])
//	}
//
// So a handler of typed events converts the batch at once, and no event costs a
// call more. It knows of its watch only the flags: what user packages can reach
// from here is compiled with them, and a watch leads to everything.
type Delivery struct {
	// batch is what the handler is given, and at how many of it the handler has
	// taken.
	batch []store.Event
	at    int
	flags *flags
}

// Events returns the batch. It is shared: read it, do not change it.
func (d *Delivery) Events() []store.Event { return d.batch }

// Next returns the index of the next event; ok is false at the end, also if the
// watch has ended meanwhile. What was returned before counts as handled.
func (d *Delivery) Next() (i int, ok bool) {
	i = d.at
	if i == len(d.batch) || d.flags.has(ended) {
		return 0, false
	}
	d.at++
	return i, true
}

// Each returns a handler that calls handle with each event.
func Each(handle func(store.Event)) func(*Delivery) {
	return func(d *Delivery) {
		events := d.Events()
		for i, ok := d.Next(); ok; i, ok = d.Next() {
			handle(events[i])
		}
	}
}

// NewHandled makes a watch that reads feed and has its events handled, in order,
// one at a time.
func NewHandled(feed *Feed, options Options, handle func(*Delivery)) *Watch {
	h := &handler{handle: handle}
	h.prepare(feed, options)
	h.target, h.delivery.flags = h, &h.flags
	h.kind.Store(int32(byHandler))
	return &h.Watch
}

// signal has the actor's turn come.
func (h *handler) signal() { h.box.Wake() }

// Woken is the actor's turn: the handler is given what there is, up to a
// quantum.
func (h *handler) Woken(*actors.Context) (again bool) {
	for given := 0; given < quantum; {
		events, err := h.take()
		if err != nil || len(events) == 0 {
			return false
		}
		if panicked := h.give(events); panicked != nil {
			panic(&EndError{h.name, panicked}) // the dispatcher, which supervises, forgets the watch
		}
		given += len(events)
	}
	return true
}

// Stopped tells the dispatcher that the actor is gone.
func (h *handler) Stopped(*actors.Context) {
	h.Watch.end(ErrEngineClosed) // no effect unless the actor was stopped from above
	h.feed.ended(&h.Watch)
}

// give gives the events to the handler. If that panics, or ends its goroutine as
// t.FailNow does, the watch ends with what happened.
func (h *handler) give(events []store.Event) (panicked *PanicError) {
	whole := false
	d := &h.delivery
	d.batch, d.at = events, 0
	defer func() {
		d.batch = nil
		if whole {
			h.passedAll(events, d.at)
			return
		}
		handled := d.at - 1
		h.passedAll(events, handled)
		value := recover()
		if value == nil {
			value = actors.ErrGoexit // goes on when this returns
		}
		ev := events[handled]
		panicked = &PanicError{Revision: ev.Revision, Key: ev.Key(), Value: value, Stack: debug.Stack()}
		h.Watch.end(panicked)
	}()
	h.handle(d)
	whole = true
	return nil
}
