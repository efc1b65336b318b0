package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
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
	// history is the history by which the watch is judged. A watch that ended before
	// storage went back keeps the history of that time.
	history *judge.History[T]
	// unjudged: it is unknown to which history the watch belongs.
	unjudged bool
	// channel is what a Channel consumer receives from; nil for other consumers.
	channel *channel[T]
	// caller is the context with which the watch was requested.
	caller *caller
	// panics: the handler panics at its next event.
	panics bool
	// requestedAt is the time of the call that requested the watch, and startedAt that of its
	// return. relists is how often the engine had listed again at the time of the call.
	requestedAt, startedAt time.Time
	relists                uint64
	// breaks is how often storage had broken its watches at the time of the call.
	breaks int
	// reached is the engine's revision at the time of the call.
	reached store.Revision
	// continues is the list whose timeline the watch requires; nil if it requires none.
	continues *lastList[T]
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
	if s.Back != 0 {
		opts.From = w.history().Shown(store.Revision(max(1, int(w.newest())+1-s.Back)))
	}
	r := w.newWatch(id, s.Consumer, sel, opts)
	r.Direct = s.Direct && w.direct != nil
	return r
}

// newWatch returns a watch that is not started yet.
func (w *World[T]) newWatch(id int, c script.Consumer, sel Selection[T], opts engine.WatchOptions) *watch[T] {
	r := &watch[T]{id: id, consumer: c, selected: sel, history: w.history(), caller: newCaller(w.sched)}
	r.Name, r.Selects, r.Options = fmt.Sprintf("w%d", id), sel.selects(), opts
	return r
}

// begin requests the watch from its engine. It fixes the bounds of the watch's start, as
// far as they are known from outside, before and after the call.
func (w *World[T]) begin(step script.Step, r *watch[T]) {
	fromNow := r.Options.From == 0 && !r.Options.InitialState && r.Options.Last == 0
	if r.consumer.Handled() && fromNow && !r.Direct {
		// A handler's watch does not tell where it began, so its start is fixed here
		// unless nothing can happen during the call.
		if w.sched.settle(); step.Meanwhile != nil || w.engine.Revision() != w.newest() {
			r.Options.From, fromNow = w.newest(), false
		}
	}
	r.Earliest = w.engine.Revision()
	if r.Options.Linearizable || r.Direct {
		r.Earliest = max(r.Earliest, w.newest())
	}
	if r.Options.InitialState && !r.Direct {
		r.Earliest = max(r.Earliest, r.Options.From)
	}
	last, known := w.beforeLast(r.Options.Last)
	if !known {
		return
	}
	if r.Options.Last > 0 {
		step.Meanwhile = nil // a change during the call would make it ambiguous which events are the last
	}
	opts := r.Options
	if w.seams.start != nil {
		opts = w.seams.start(w, opts)
	}
	r.requestedAt, r.relists, r.reached = w.clock.Now(), w.engine.Stats().Relists, w.engine.Revision()
	r.breaks = len(w.storage.breaks)
	var err error
	var adjustRecord func()
	w.waitAs(r.caller, step, 0, func() {
		adjustRecord = w.ask(r, func() { r.handle, err = w.call(r, opts) })
	})
	r.startedAt = w.clock.Now()
	w.trace.result(r.Earliest, err)
	switch r.Latest = w.newest(); {
	case r.Options.Last > 0:
		r.Earliest, r.Latest = last, last
	case r.Direct:
		r.Latest = r.Earliest
	}
	if err != nil {
		w.judgeRefusedWatch(step, r, err)
		return
	}
	if r.history != w.history() && !r.Direct {
		w.startedDuringRewind(r)
	}
	if fromNow && !r.Direct && !r.consumer.Handled() && r.Earliest <= r.Latest {
		r.Latest = r.handle.Revision()
		if r.Latest < r.Earliest {
			w.fail(judge.Failed(judge.Resumable, r.Name, "it starts from now at %d, the cache was at %d", r.Latest, r.Earliest))
		}
		r.Earliest = r.Latest
	}
	if r.consumer == script.Channel {
		r.channel = w.channelOf(r.handle)
	}
	adjustRecord()
	w.watches[r.id] = r
	w.started = append(w.started, r)
}

// startedDuringRewind handles a watch during whose start storage went back: if it is running, it
// belongs to the current history, and if it has ended, its history is unknown.
func (w *World[T]) startedDuringRewind(r *watch[T]) {
	r.Earliest = min(r.Earliest, w.restored)
	if r.handle.Err() != nil {
		r.unjudged = true
		return
	}
	r.history = w.history()
}

// beforeLast returns the revision before the last n events in the engine's window. It is
// known only if the engine has caught up with storage and received each of them as an
// event.
func (w *World[T]) beforeLast(n int) (rev store.Revision, known bool) {
	if n == 0 {
		return 0, true
	}
	w.sched.settle()
	s := w.engine.Stats()
	rev = w.newest() - store.Revision(min(n, s.WindowEvents))
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
	if r.consumer.Handled() {
		return w.engineOf(r).Handle(r.caller, opts, func(ev engine.Event[T]) { w.handle(r, ev) })
	}
	return w.engineOf(r).Watch(r.caller, opts)
}

// handle is the handler of every watch that has one. That of a Curious consumer also lists
// within the call.
func (w *World[T]) handle(r *watch[T], ev engine.Event[T]) {
	if r.panics {
		r.Causes = append(r.Causes, engine.ErrHandlerPanic)
		panic("the scenario says so")
	}
	w.deliver(r, ev)
	if r.consumer == script.Curious && !w.rewinding {
		w.listBy(context.Background(), w.engine, script.ReadLatest, 0, r.selected)
	}
}

// deliver records an event that the consumer received.
func (w *World[T]) deliver(r *watch[T], ev engine.Event[T]) {
	ev = w.historyEvent(ev)
	if w.seams.deliver == nil {
		r.Events = append(r.Events, ev)
	} else {
		r.Events = append(r.Events, w.seams.deliver(r, ev)...)
	}
	delivery(w.trace, r.id, ev)
}

// judgeRefusedWatch fails the world if the refusal of a watch has no reason at that time. At rest no
// refusal has one.
func (w *World[T]) judgeRefusedWatch(step script.Step, r *watch[T], err error) {
	switch {
	case w.resting:
		w.fail(judge.Failed(judge.Refusals, r.Name, "%+v: %v", r.Options, err))
	case slices.ContainsFunc(w.broken(r), func(broken error) bool { return errors.Is(err, broken) }):
	case errors.Is(err, engine.ErrExpired):
		floor := w.floor(r)
		if w.isOfTimeline(r) && r.history == w.history() && r.Options.From >= floor && (r.Direct || w.history().Received(r.Options.From)) {
			w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the window starts at %d", err, floor))
		}
	case r.caller.canceled && errors.Is(err, errCanceled):
	case errors.Is(err, engine.ErrIdle):
		if step.Turns == script.Unlimited && w.sched.Pending() > 0 && !w.sched.stuck() {
			w.fail(judge.Failed(judge.Refusals, r.Name, "idle with turns left"))
		}
	case !errors.Is(err, engine.ErrNotReady) && !errors.Is(err, engine.ErrFuture):
		w.fail(judge.Failed(judge.Refusals, r.Name, "%+v: %v", r.Options, err))
	}
}

// take lets the consumer read until it has s.N events or there are no more. A consumer
// that reads a watch which had ended before must receive events or the end.
func (w *World[T]) take(r *watch[T], s script.Step) {
	endedBefore, endsBefore, eventsBefore := r.handle.Err(), len(r.Ends), len(r.Events)
	switch {
	case r.consumer.Handled():
		w.ended(r, r.handle.Err())
	case r.consumer == script.Batches:
		w.wait(s, 0, func(ctx context.Context) { w.takeBatches(ctx, r, s.N) })
	case r.consumer == script.Channel:
		w.wait(s, 0, func(context.Context) { w.takeFromChannel(r, s.N) })
	default:
		w.wait(s, 0, func(context.Context) { w.takeEvents(r, s.N) })
	}
	if endedBefore != nil && (len(r.Ends) == endsBefore || len(r.Events) > eventsBefore) {
		w.fail(judge.Failed(judge.Ends, r.Name, "its consumer asks for more and is not told that it has ended for %v", endedBefore))
	}
}

func (w *World[T]) takeEvents(r *watch[T], n int) {
	for ev, err := range r.handle.Events() {
		if errors.Is(err, engine.ErrIdle) {
			break
		}
		if err != nil {
			w.ended(r, w.endError(r, err))
			break
		}
		if w.deliver(r, ev); len(r.Events)%3 == 0 {
			w.claim(r)
		}
		if n--; n <= 0 {
			break
		}
	}
	w.claim(r)
}

func (w *World[T]) takeBatches(ctx context.Context, r *watch[T], n int) {
	for n > 0 {
		events, err := r.handle.Next(ctx)
		if errors.Is(err, engine.ErrIdle) || ctx.Err() != nil && err == errCanceled { // the watch continues
			break
		}
		if err != nil {
			w.ended(r, w.endError(r, err))
			break
		}
		for _, ev := range events {
			w.deliver(r, ev)
		}
		n -= len(events)
		w.claim(r)
	}
}

// claim records the revision from which, by its own account, the watch can be resumed. It
// does not while a seam withholds events that the consumer should have by now.
func (w *World[T]) claim(r *watch[T]) {
	if len(r.held) == 0 {
		r.Claims = append(r.Claims, judge.Claim{Events: len(r.Events), Revision: w.resumeRevision(r)})
	}
}

// resumeRevision returns the revision from which, by its own account, the watch can be resumed.
func (w *World[T]) resumeRevision(r *watch[T]) store.Revision {
	rev := r.handle.Revision()
	if w.seams.resumeRevision != nil {
		rev = w.seams.resumeRevision(r, rev)
	}
	return rev
}

// stop lets the consumer stop its watch.
func (w *World[T]) stop(r *watch[T]) {
	if r.handle.Err() == nil {
		r.Causes = append(r.Causes, engine.ErrStopped)
	}
	if w.seams.stop == nil || !w.seams.stop(r) {
		r.handle.Stop()
	}
	w.ended(r, r.handle.Err())
}

// ended records err, with which the watch says that it ended; nil if it has not. The first
// time it also records the causes there are for that.
func (w *World[T]) ended(r *watch[T], err error) {
	if err == nil {
		return
	}
	if len(r.Ends) == 0 {
		w.trace.end(r.id, err)
		r.Causes = append(r.Causes, w.causes(r)...)
	}
	r.Ends = append(r.Ends, err)
}

// causes returns the reasons for which the watch may have ended by now: the window, its
// deadline, its context and storage.
func (w *World[T]) causes(r *watch[T]) (causes []error) {
	if w.mayExpire(r) {
		causes = append(causes, engine.ErrExpired)
	}
	if w.mayBeDue(r) {
		causes = append(causes, engine.ErrDeadline)
	}
	if r.caller.canceled {
		causes = append(causes, errCanceled)
	}
	return append(causes, w.broken(r)...)
}

// mayExpire reports whether the watch may expire: the window has moved past the position
// of its consumer, or the engine has listed since the watch was requested and may have
// found that storage has another history. A watch that starts at a future revision waits
// for it at the revision where the engine was, which the window can pass as well.
func (w *World[T]) mayExpire(r *watch[T]) bool {
	if floor := w.floor(r); r.Direct {
		return r.MayExpire(floor) || r.Earliest < min(r.Options.From, floor)
	}
	s := w.engine.Stats()
	waited := r.reached < max(r.Options.From, r.Earliest) && r.reached < s.WindowFloor
	return r.MayExpire(s.WindowFloor) || waited || s.Relists > r.relists
}

// mayBeDue reports whether the watch's deadline may have passed. After a clock
// correction that is unknown.
func (w *World[T]) mayBeDue(r *watch[T]) bool {
	timeout := r.Options.Timeout
	return timeout > 0 && (w.storage.clockJumped || !w.clock.Now().Before(r.requestedAt.Add(timeout)))
}

// isDue reports whether the watch's deadline has certainly passed.
func (w *World[T]) isDue(r *watch[T]) bool {
	timeout := r.Options.Timeout
	return timeout > 0 && !w.storage.clockJumped && !w.clock.Now().Before(r.startedAt.Add(timeout))
}

// resume starts a watch at the position of another watch's consumer. The other watch may
// continue.
func (w *World[T]) resume(s script.Step) {
	r := w.watches[s.Watch]
	if r == nil || r.consumer.Handled() {
		return
	}
	w.claim(r)
	opts := r.Options
	opts.From = w.resumeRevision(r)
	opts.InitialState, opts.Last = opts.From == 0, 0
	continues := r.continues
	if opts.From == 0 {
		continues, opts.Timeline = nil, engine.Timeline{}
	}
	if continues == nil && r.history != w.history() && opts.From > w.newest() {
		return // its position is beyond the current history of storage
	}
	again := w.newWatch(s.Other, r.consumer, r.selected, opts)
	again.Direct = r.Direct
	again.requireTimeline(continues)
	w.begin(s, again)
}

// ends returns why each watch of the engine with the cache ended, nil for those that have
// not.
func (w *World[T]) ends() []error {
	ends := make([]error, 0, len(w.started))
	for _, r := range w.started {
		if !r.Direct {
			ends = append(ends, r.End())
		}
	}
	return ends
}

// judgeWatches judges every watch by its history.
func (w *World[T]) judgeWatches() {
	for _, r := range w.started {
		err := r.JudgeEnds()
		if !r.unjudged {
			err = r.history.Judge(&r.Record)
		}
		if err != nil {
			w.fail(err)
			return
		}
	}
}

// moveWatches moves the watches that continue after storage went back from the history old to
// the current one. Positions beyond the current one are no longer claims.
func (w *World[T]) moveWatches(old *judge.History[T]) {
	for _, r := range w.started {
		if r.history == old && r.handle.Err() == nil && !r.Direct {
			r.history = w.history()
			r.Claims = slices.DeleteFunc(r.Claims, func(c judge.Claim) bool { return c.Revision > w.newest() })
		}
	}
}
