package world

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// watch is one watch of a world, with its consumer and the record of what it received.
type watch[T any] struct {
	judge.Record[T]
	id       int
	consumer script.Consumer
	selected Selection[T]
	handle   *engine.Watch[T]
	// history is what the watch must agree with. A watch that ended before
	// storage went back keeps the history of that time.
	history *judge.History[T]
	// ambiguous: storage went back while the watch started or before it ended, so it may be of any
	// history since that with the index since, which the engine may have shown at the time of the call.
	// The index of the current one at the return is returned.
	ambiguous       bool
	since, returned int
	// refusable: the engine knows at the call, by the revision of storage, that this has gone back, and its
	// cache has yet to notice it.
	refusable bool
	// exact: the watch has told where it started.
	exact bool
	// channel is what a Channel consumer receives from; nil for other consumers.
	channel *execution.Channel[engine.Event[T]]
	// loop is where a Loop consumer is; nil between two loops, and for other consumers.
	loop *loop[T]
	// caller is the context with which the watch was requested.
	caller *execution.Caller
	// panics: the handler panics at its next event.
	panics bool
	// processing is the state of a Processor.
	processing processing
	// skips: a Processor goes on without an event that it cannot process.
	skips bool
	// requestedAt is the time of the call that requested the watch, and startedAt that of its
	// return. At the time of the call the engine had listed again, and storage had gone back, so
	// often.
	requestedAt, startedAt time.Time
	relists                uint64
	rewinds                int
	// breaks is how often storage had broken its watches at the time of the call.
	breaks int
	// reached is the engine's revision at the time of the call, acknowledged is storage's, and turns
	// how many turns there had been.
	reached, acknowledged store.Revision
	turns                 uint64
	// continues is the list whose timeline the watch requires; nil if it requires none.
	continues *lastList[T]
	// overSeen: the watch had ended when it was last compared with its buffer.
	overSeen bool
	// checkpoint is the last that its consumer has saved, of the history checkpointed; nil if there is none.
	checkpoint   engine.Checkpoint
	checkpointed *judge.History[T]
	// held are events that a seam withholds from the consumer.
	held []engine.Event[T]
}

// open starts the watch that s describes, unless the engine refuses it.
func (w *World[T]) open(step script.Step, id int, s script.Start) { w.begin(step, w.watchOf(id, s)) }

// watchOf returns the watch that s describes, which is not started yet.
func (w *World[T]) watchOf(id int, s script.Start) *watch[T] {
	sel := w.cfg.Selections[s.Selection%len(w.cfg.Selections)]
	opts := s.Options
	opts.Key, opts.Prefix, opts.Labels, opts.Fields = sel.Key, sel.Prefix, sel.Labels, sel.Fields
	opts.LabelSelector, opts.FieldSelector = nil, nil
	if s.Back != 0 {
		opts.From = w.history().Shown(store.Revision(max(1, int(w.newest())+1-s.Back)))
	}
	r := w.newWatch(id, s.Consumer, sel, opts)
	r.Uncached, r.skips = s.Uncached && w.uncached != nil, s.Skip
	return r
}

// newWatch returns a watch that is not started yet.
func (w *World[T]) newWatch(id int, c script.Consumer, sel Selection[T], opts engine.WatchOptions) *watch[T] {
	r := &watch[T]{id: id, consumer: c, selected: sel, history: w.history(), caller: execution.NewCaller(w.sched)}
	r.Name, r.Selects, r.Options = fmt.Sprintf("w%d", id), sel.selects(), opts
	return r
}

// begin requests the watch from its engine. It fixes the bounds of the watch's start, as
// far as they are known from outside, before and after the call.
func (w *World[T]) begin(step script.Step, r *watch[T]) {
	fromNow := w.boundStart(step, r)
	last, known := w.beforeLast(r.Options.Last)
	if !known {
		return
	}
	if r.Options.Last > 0 {
		step.Meanwhile = nil // a change during the call would make it ambiguous which events are the last
	}
	adjustRecord, err := w.requestWatch(step, r)
	r.Latest = w.newest()
	switch {
	case r.Options.Last > 0:
		r.Earliest, r.Latest = last, last
	case r.Uncached:
		r.Latest = r.Earliest
	}
	if err != nil {
		w.judgeRefusedWatch(step, r, err)
		return
	}
	if r.ambiguous {
		w.startedDuringRewind(r)
	}
	if fromNow && !r.Uncached && !r.consumer.Handled() && r.Earliest <= r.Latest {
		w.startedNow(r)
	}
	if r.consumer == script.Channel {
		r.channel = execution.NewChannel(w.sched, r.handle.Chan())
	}
	adjustRecord()
	w.watches[r.id] = r
	w.started = append(w.started, r)
}

// boundStart sets the earliest revision at which the watch may start, before it is
// requested, and reports whether it is to start from now.
func (w *World[T]) boundStart(step script.Step, r *watch[T]) (fromNow bool) {
	fromNow = r.Options.From == 0 && !r.Options.InitialState && r.Options.Last == 0
	if r.consumer.Handled() && fromNow && !r.Uncached {
		// A handler's watch does not tell where it began, so its start is fixed here
		// unless nothing can happen during the call.
		if w.sched.Settle(); step.Meanwhile != nil || w.unnoticed() || w.engine.Revision() != w.newest() {
			r.Options.From, fromNow = w.newest(), false
		}
	}
	r.Earliest = w.engine.Revision()
	switch {
	case r.Uncached:
		r.Earliest = w.newest()
	case r.Options.Linearizable:
		r.Earliest = max(r.Earliest, w.newest())
	}
	if r.Options.InitialState && !r.Uncached {
		r.Earliest = max(r.Earliest, r.Options.From)
	}
	return fromNow
}

// requestWatch makes the call that requests the watch, and records when and where that was.
func (w *World[T]) requestWatch(step script.Step, r *watch[T]) (adjustRecord func(), err error) {
	opts := r.Options
	if w.seams.start != nil {
		opts = w.seams.start(w, opts)
	}
	r.requestedAt, r.relists, r.reached, r.acknowledged = w.clock.Now(), w.engine.Stats().Relists, w.engine.Revision(), w.newest()
	r.rewinds, r.breaks, r.turns = len(w.former), len(w.storage.Breaks), w.trace.Number(execution.Turns)
	r.since = w.oldestShown()
	if r.refusable = r.Options.Linearizable && w.newest() < r.reached && w.unnoticed(); r.refusable {
		r.since = len(w.former)
	}
	name := r.Name
	if opts.InitialState {
		name = "state of " + name
	}
	if err = w.refuse(name); err == nil {
		w.waitAs(r.caller, step, 0, func() {
			adjustRecord = w.ask(r, func() { r.handle, err = w.call(r, opts) })
		})
	}
	r.startedAt = w.clock.Now()
	r.returned = len(w.former)
	r.ambiguous = !r.Uncached && r.since < r.returned
	w.trace.Result(r.Earliest, err)
	return adjustRecord, err
}

// startedNow sets the bounds of a watch from now to where it says that it has started.
func (w *World[T]) startedNow(r *watch[T]) {
	r.Latest = r.handle.Revision()
	if r.Latest < r.Earliest && !r.ambiguous {
		w.fail(judge.Failed(judge.Resumable, r.Name, "it starts from now at %d, the cache was at %d", r.Latest, r.Earliest))
	}
	r.Earliest, r.exact = r.Latest, true
}

// beforeLast returns the revision before the last n events in the engine's window. It is
// known only if the engine has caught up with storage and received each of them as an
// event.
func (w *World[T]) beforeLast(n int) (rev store.Revision, known bool) {
	if n == 0 || w.rewinding {
		return 0, n == 0
	}
	w.sched.Settle()
	s := w.engine.Stats()
	rev = max(w.newest()-store.Revision(min(n, s.WindowEvents)), s.WindowFloor) // a chunk may have discarded events, too
	for at := rev + 1; at <= w.newest(); at++ {
		if !w.history().Received(at) {
			return 0, false
		}
	}
	return rev, s.Ready && s.Revision == w.newest()
}

// call makes the call that starts the watch.
func (w *World[T]) call(r *watch[T], opts engine.WatchOptions) (*engine.Watch[T], error) {
	opts.Name = r.Name
	switch {
	case r.consumer == script.Processor:
		return w.engineOf(r).Process(r.caller, opts, w.policyOf(r), func(ctx context.Context, ev engine.Event[T]) error { return w.process(ctx, r, ev) })
	case r.consumer.Handled():
		return w.engineOf(r).Handle(r.caller, opts, func(ev engine.Event[T]) { w.handle(r, ev) })
	}
	return w.engineOf(r).Watch(r.caller, opts)
}

// resume starts a watch at the position of another watch's consumer. The other watch may
// continue.
func (w *World[T]) resume(s script.Step) {
	r := w.watches[s.Watch]
	if r == nil {
		return
	}
	w.judgeCheckpoint(r) // that of before
	w.claim(r)
	w.judgeCheckpoint(r)
	opts := r.Options
	opts.From = w.resumeRevision(r)
	opts.InitialState, opts.Last = opts.From == 0, 0
	continues := r.continues
	if opts.From == 0 {
		continues, opts.Timeline = nil, engine.Timeline{}
	}
	if continues == nil && (r.history != w.history() || r.ambiguous) && opts.From > w.newest() {
		return // its position is beyond the current history of storage
	}
	again := w.newWatch(s.Other, r.consumer, r.selected, opts)
	again.Uncached, again.skips = r.Uncached, r.skips
	again.requireTimeline(continues)
	w.begin(s, again)
}
