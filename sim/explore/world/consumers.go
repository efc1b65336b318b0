package world

import (
	"context"
	"errors"
	"iter"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// consume performs a step of a watch's consumer.
func (w *World[T]) consume(s script.Step) {
	r := w.watches[s.Watch]
	if r == nil {
		return
	}
	switch s.Do {
	case script.Take:
		w.take(r, s)
	case script.Stop:
		w.stop(r)
	case script.Panic:
		r.panics = true
	case script.Fail:
		r.processing.fails = s.N
	}
}

// handle is the handler of every watch that has one. For a
// [script.ListingHandler] it also lists within the call.
func (w *World[T]) handle(r *watch[T], ev engine.Event[T]) {
	if r.panics {
		r.Causes = append(r.Causes, engine.ErrHandlerPanic)
		panic("the scenario says so")
	}
	w.deliver(r, ev)
	if r.consumer == script.ListingHandler {
		w.listBy(context.Background(), w.engine, script.ReadLatest, 0, r.selected)
	}
}

// deliver records an event that the consumer received.
func (w *World[T]) deliver(r *watch[T], ev engine.Event[T]) {
	w.noteLag(r)
	ev = w.historyEvent(ev)
	events := []engine.Event[T]{ev}
	if w.seams.deliver != nil {
		events = w.seams.deliver(r, ev)
	}
	for _, ev := range events {
		w.judgeConflation(r, ev)
		r.Events = append(r.Events, ev)
	}
	execution.Delivery(w.trace, r.id, ev)
}

// judgeConflation fails the world if the next event of a watch says that the watch has conflated,
// and the window has not moved past it. An emitted value may tell of an earlier time.
func (w *World[T]) judgeConflation(r *watch[T], ev engine.Event[T]) {
	tells := ev.Is(store.Conflated) || ev.Is(store.AfterGap) && ev.Type != store.Emitted
	if !tells || r.Options.Policy != engine.Conflate || w.outlivesHistory(r) {
		return
	}
	if at, floor := r.position(), w.floor(r); floor <= at {
		w.fail(judge.Failed(judge.Reliable, r.Name, "%v says that events were left out, but the watch was at %d, and the window starts at %d", ev, at, floor))
	}
}

// position returns the revision up to which the consumer certainly had everything before it
// received conflated events, if it has received any.
func (r *watch[T]) position() store.Revision {
	start := r.Earliest
	if from := r.Options.From; from > 0 && !r.Options.InitialState {
		start = min(start, from)
	}
	for i := len(r.Events) - 1; i >= 0; i-- {
		if ev := r.Events[i]; ev.Marks&(store.Conflated|store.Initial) == 0 {
			return max(start, ev.Revision)
		}
	}
	return start
}

// take lets the consumer read until it has s.N events or there are no more. A consumer
// that reads a watch which had ended before must get the end, and no event.
func (w *World[T]) take(r *watch[T], s script.Step) {
	endedBefore, endsBefore, eventsBefore := r.handle.Err(), len(r.Ends), len(r.Events)
	switch {
	case r.consumer.Handled():
		w.ended(r, r.handle.Err())
		w.claim(r)
	case r.consumer == script.Batches:
		w.wait(s, 0, func(ctx context.Context) { w.takeBatches(ctx, r, s.N) })
	case r.consumer == script.Channel:
		w.wait(s, 0, func(context.Context) { w.takeFromChannel(r, s.N) })
	case r.consumer == script.Loop:
		w.wait(s, 0, func(context.Context) { w.takeInLoop(r, s.N) })
	default:
		w.wait(s, 0, func(context.Context) { w.takeEvents(r, s.N) })
	}
	if endedBefore != nil && (len(r.Ends) == endsBefore || len(r.Events) > eventsBefore) {
		w.fail(judge.Failed(judge.Ends, r.Name, "its consumer asks for more and is not told that it has ended for %v", endedBefore))
	}
}

func (w *World[T]) takeEvents(r *watch[T], n int) {
	for ev, err := range r.handle.Events() {
		if n--; !w.inLoop(r, ev, err) || n <= 0 {
			break
		}
	}
	w.claim(r)
}

// inLoop is what a loop over the events of a watch does with each. It reports whether the loop goes on.
func (w *World[T]) inLoop(r *watch[T], ev engine.Event[T], err error) (more bool) {
	switch {
	case errors.Is(err, engine.ErrIdle):
		return false
	case err != nil:
		w.ended(r, w.endError(r, err))
		return false
	}
	if w.deliver(r, ev); len(r.Events)%3 == 0 {
		w.claim(r)
	}
	return true
}

// loop is a loop over the events of a watch, which stays where it is from one take to the next.
type loop[T any] struct {
	next func() (engine.Event[T], error, bool)
	end  func()
}

// takeInLoop lets the consumer's loop continue by at most n events. A loop that has nothing to do is over, and
// the next take begins another.
func (w *World[T]) takeInLoop(r *watch[T], n int) {
	defer w.claim(r)
	if r.loop == nil {
		next, end := iter.Pull2(r.handle.Events())
		r.loop = &loop[T]{next, end}
	}
	for ; n > 0; n-- {
		if ev, err, _ := r.loop.next(); !w.inLoop(r, ev, err) {
			r.endLoop()
			return
		}
	}
}

// endLoop leaves the loop.
func (r *watch[T]) endLoop() {
	if r.loop != nil {
		r.loop.end()
		r.loop = nil
	}
}

func (w *World[T]) takeBatches(ctx context.Context, r *watch[T], n int) {
	for n > 0 {
		events, err := r.handle.Next(ctx)
		if errors.Is(err, engine.ErrIdle) || ctx.Err() != nil && err == execution.ErrCanceled { // the watch continues
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
		rev := w.resumeRevision(r)
		r.Claims = append(r.Claims, judge.Claim{Events: len(r.Events), Revision: rev})
		w.saveCheckpoint(r, rev)
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

// maxIdlePauses is how often in a row the goroutine of a channel may pause without
// sending although it need not wait for the engine.
const maxIdlePauses = 3

// takeFromChannel lets the consumer receive at most n events.
func (w *World[T]) takeFromChannel(r *watch[T], n int) {
	defer w.claim(r)
	for paused := 0; n > 0; {
		ev, received, open := r.channel.Receive(r.handle.Err() != nil)
		switch {
		case received:
			paused = 0
			n--
			if w.deliver(r, ev); len(r.Events)%3 == 0 {
				w.claim(r)
			}
		case !open:
			w.closed(r)
			return
		case paused < maxIdlePauses:
			paused++
		case w.sched.Run() == 0:
			return
		default:
			paused = 0
		}
	}
}

// closed checks that the channel of r is closed and that r has ended.
func (w *World[T]) closed(r *watch[T]) {
	if closed := r.channel.IsClosed(); !closed || r.handle.Err() == nil {
		w.fail(judge.Failed(judge.Ends, r.Name, "its channel should be closed and its watch have ended; closed: %v, ended for %v", closed, r.handle.Err()))
		return
	}
	w.ended(r, w.endError(r, r.handle.Err()))
}

// abandon ends the goroutines behind channels and loops that are left when the world ends.
func (w *World[T]) abandon() {
	for _, r := range w.started {
		r.endLoop()
		if r.channel != nil {
			r.channel.Abandon()
		}
	}
}
