package judge

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Record is everything that a consumer and its caller know about one watch.
type Record[T any] struct {
	// Name is what failures call the watch.
	Name string
	// Selects is equivalent to the selectors in Options, without using them.
	Selects func(T) bool
	// Options are those of the watch.
	Options engine.WatchOptions
	// Continues is the history that Options.Timeline names; nil if it names none.
	Continues *History[T]
	// Uncached: the watch is of an engine without a cache, and so has every change as an
	// event.
	Uncached bool
	// Earliest and Latest bound the revision at which the watch started, unless
	// Options.From is set: that of the cache before the call, and that of storage after
	// it. For a watch with Options.Last, both are the revision before those events.
	Earliest, Latest store.Revision
	// Events are those that the consumer received, in order.
	Events []engine.Event[T]
	// Claims are the results of Watch.Revision, in order.
	Claims []Claim
	// Lost is how many events the watch reports as left out.
	Lost uint64
	// Drained: the consumer has received everything that there is.
	Drained bool
	// Through, if not zero, is a revision up to which the consumer has received everything although
	// its watch has ended, since the engine was drained.
	Through store.Revision
	// Ends are the results of Watch.Err after the watch had ended.
	Ends []error
	// Causes are the reasons to end that have occurred: its consumer stopped it, its
	// context ended with a cause, its handler panicked, its timeout has passed, its
	// storage broke it, the window has moved past it or storage has another history, or
	// the engine was closed. The watch's reason must match one of them. The exception is
	// [engine.ErrSlowConsumer] of a watch with the policy [engine.Terminate], which it may have
	// if it has Lagged: for how long is not known from outside.
	Causes []error
	// Lagged: more selected changes than Options.Buffer were ahead of the consumer at some time.
	Lagged bool
}

// Claim is a result of Watch.Revision: a new watch from Revision would continue after
// the consumer's first Events events.
type Claim struct {
	Events   int
	Revision store.Revision
}

// reasons are the engine's errors that say why a watch has ended.
var reasons = []error{
	engine.ErrStopped, engine.ErrExpired, engine.ErrSlowConsumer,
	engine.ErrDeadline, engine.ErrEngineClosed, engine.ErrHandlerPanic,
}

// End returns why the watch ended, nil if it has not.
func (r *Record[T]) End() error {
	if len(r.Ends) == 0 {
		return nil
	}
	return r.Ends[0]
}

// JudgeEnds returns a [*Failure] of [Ends] if the end of the watch is wrong: it must end for
// one of Causes, always return the same reason, and end if one of them has occurred and it
// is drained. It needs no history, and [History.Judge] includes it.
func (r *Record[T]) JudgeEnds() error {
	for _, end := range r.Ends {
		if end != r.End() {
			return Failed(Ends, r.Name, "it ended for %v, then for %v", r.End(), end)
		}
	}
	reason := Reason(r.End())
	switch {
	case r.End() == nil && r.Drained && len(r.Causes) > 0:
		return Failed(Ends, r.Name, "it goes on, in spite of: %v", r.Causes[0])
	case r.End() == nil:
		return nil
	case slices.ContainsFunc(r.Causes, func(cause error) bool { return errors.Is(r.End(), cause) }):
		return nil
	case reason == nil:
		return Failed(Ends, r.Name, "%v is no reason for a watch to end", r.End())
	case reason == engine.ErrSlowConsumer && r.Options.Policy == engine.Terminate && r.Lagged:
		return nil
	}
	return Failed(Ends, r.Name, "it ended for %v, which has no cause; what happened is %v", r.End(), r.Causes)
}

// Reason returns the engine's error that err wraps, of those with which watches end; nil if
// there is none.
func Reason(err error) error {
	for _, reason := range reasons {
		if errors.Is(err, reason) {
			return reason
		}
	}
	return nil
}

// MayExpire reports whether a window that starts at floor may have moved past the watch.
// Such a watch still delivers its backlog, up to its buffer; so what counts is the
// position of its consumer before that many events.
func (r *Record[T]) MayExpire(floor store.Revision) bool {
	kept := cmp.Or(r.Options.Buffer, watcher.DefaultBuffer)
	return r.after(max(0, len(r.Events)-kept)) < floor
}

// after returns the revision up to which the consumer has certainly received everything after its first n events:
// that of the last of them or, if that is one of the initial state, that of the start.
func (r *Record[T]) after(n int) store.Revision {
	switch {
	case n > 0 && !r.Events[n-1].Is(store.Initial):
		return r.Events[n-1].Revision
	case r.Options.From > 0 && !r.Options.InitialState:
		return r.Options.From
	}
	return r.Earliest
}

// Lacks returns an upper bound of how many events up to revision through the watch has yet to deliver: the
// selected changes after the consumer's last event, and all that the engine has not received as events.
func (h *History[T]) Lacks(r *Record[T], through store.Revision) (n int) {
	for rev := max(First, h.Before(r.after(len(r.Events)))) + 1; rev <= min(through, h.Newest()); rev++ {
		if _, _, shown := h.change(rev).selectedAs(r.Selects); shown || !r.Uncached && !h.Received(rev) {
			n++
		}
	}
	return n
}

// Judge returns a [*Failure] if the record breaks an invariant, otherwise nil.
func (h *History[T]) Judge(r *Record[T]) error {
	if err := r.JudgeEnds(); err != nil {
		return err
	}
	if r.Continues != nil {
		if err := h.JudgeTimeline(r.Name, r.Continues); err != nil {
			return err
		}
	}
	j := &judge[T]{History: h, Record: r, have: State{}, model: State{}, emitted: map[store.Revision]bool{}, index: -1}
	return j.run()
}

// judge compares a record with the history, event by event.
type judge[T any] struct {
	*History[T]
	*Record[T]
	// have is the state to which the consumer's events add up; position is the revision
	// up to which it is complete, and begun the revision at which the watch started.
	have            State
	position, begun store.Revision
	// model is the state that have should be at revision modelRevision, and differences is the number
	// of keys in which the two differ.
	model         State
	modelRevision store.Revision
	differences   int
	// index is that of the event being judged, -1 outside of events; bookmarked
	// is the revision of the last bookmark.
	index      int
	bookmarked store.Revision
	// resumable is the least revision that the watch must claim now: that of the last
	// event after the initial state that is not conflated, or that of the start.
	resumable store.Revision
	// delivered is the number of events after the initial state, without bookmarks, and accounted how
	// many of them the received changes account for. last is the revision of the last of them, and
	// conflated says that it stands for several.
	delivered, accounted uint64
	last                 store.Revision
	conflated            bool
	// emitted are the revisions of the emitted values that the consumer received.
	emitted        map[store.Revision]bool
	claimed        int  // the first claim that has not been judged
	initials       int  // how many events the initial state has
	startsInFuture bool // the watch starts at a revision that does not exist yet
}

// Received reports whether the engine received the change at rev as an event. A watch of
// storage itself misses none.
func (j *judge[T]) Received(rev store.Revision) bool {
	return j.Uncached || j.History.Received(rev)
}

// fail returns a failure of the event being judged.
func (j *judge[T]) fail(i Invariant, format string, args ...any) error {
	problem := fmt.Sprintf(format, args...)
	if j.index >= 0 && j.index < len(j.Events) {
		problem = fmt.Sprintf("%v: %s", j.Events[j.index], problem)
	}
	return &Failure{Invariant: i, Where: j.Name, Event: j.index, Problem: problem}
}

// run judges the start, every event with the claims before it, and whether all was received.
func (j *judge[T]) run() error {
	first, err := j.begin()
	if err != nil || j.startsInFuture {
		return err
	}
	for i := first; i < len(j.Events); i++ {
		if err := j.judgeClaims(i); err != nil {
			return err
		}
		j.index = i
		if err := j.judgeEvent(j.Events[i]); err != nil {
			return err
		}
		j.index = -1
	}
	if err := j.judgeClaims(len(j.Events)); err != nil {
		return err
	}
	if j.Drained && j.End() == nil {
		if j.mustEndInitialState(len(j.Events)) {
			return j.fail(Bookmarkable, "no bookmark has ended the initial state")
		}
		if err := j.judgeComplete(Conserved, j.Newest(), "after everything was read"); err != nil {
			return err
		}
		return j.judgeLost()
	}
	if j.Through > 0 {
		return j.judgeThrough()
	}
	return nil
}

// judgeThrough checks that the consumer has received everything up to Through. One that conflates may
// have more than the revisions of its events say.
func (j *judge[T]) judgeThrough() error {
	if j.Options.Policy == engine.Conflate {
		for rev := j.Through; rev <= j.Newest(); rev++ {
			if j.stateIs(rev, true) {
				return nil
			}
		}
	}
	return j.judgeComplete(Conserved, max(j.Through, j.position), "after the engine was drained")
}

// hasAll reports whether the consumer has received everything that it was to.
func (r *Record[T]) hasAll() bool { return r.Drained && r.End() == nil || r.Through > 0 }

// begin determines the revision at which the watch started and reads its initial state. It
// returns the index of the first event after that.
func (j *judge[T]) begin() (first int, err error) {
	switch {
	case j.Options.InitialState:
		first, err = j.judgeInitialState()
	case j.Options.Last > 0:
		j.position = j.Earliest
	case j.Options.From > j.Newest():
		j.startsInFuture = true
		if len(j.Events) > 0 {
			err = j.fail(Resumable, "it starts at %d, which has not come, but has %v", j.Options.From, j.Events[0])
		}
	case j.Options.From > 0:
		j.position = j.Before(j.Options.From)
	default:
		j.position = j.latestStart()
	}
	if err != nil || j.startsInFuture {
		return first, err
	}
	j.begun, j.modelRevision = j.position, j.position
	if !j.Options.InitialState {
		j.resumable = j.Before(j.Options.From)
		j.have = j.State(j.position, j.Selects)
	}
	j.model = maps.Clone(j.have)
	if first < len(j.Events) || j.hasAll() {
		return first, nil
	}
	j.model = j.State(j.position, j.Selects) // the initial state was cut short
	for key := range j.model {
		if _, there := j.have[key]; !there {
			j.differences++
		}
	}
	return first, nil
}

// latestStart returns the latest revision at which a watch from "now" can have started: any
// from that of the call to that of the return is possible, if it is before the first event.
func (j *judge[T]) latestStart() store.Revision {
	return max(j.Earliest, min(j.Latest, j.bound(0)))
}

// judgeInitialState checks the initial state, which must be in key order and have only objects that
// were written, and determines its revision. It returns the number of its events.
func (j *judge[T]) judgeInitialState() (int, error) {
	n, last := 0, ""
	for ; n < len(j.Events) && j.Events[n].Is(store.Initial); n++ {
		ev := j.Events[n]
		j.index = n
		if ev.Type != store.Added || ev.Key() <= last {
			return 0, j.fail(InitialState, "after key %q", last)
		}
		if ev.Object.Revision != ev.Revision {
			return 0, j.fail(Atomic, "its object is of revision %d", ev.Object.Revision)
		}
		if err := j.judgeObject(ev.Object); err != nil {
			return 0, err
		}
		if err := j.judgePrevious(ev); err != nil {
			return 0, err
		}
		last = ev.Key()
		j.have[last] = ev.Object.Revision
	}
	j.index, j.initials = -1, n
	whole := n < len(j.Events) || j.hasAll()
	for rev := min(j.Latest, j.bound(n)); rev >= j.Earliest && rev >= First; rev-- {
		if j.stateIs(rev, whole) {
			j.position = rev
			return n, nil
		}
	}
	return 0, j.fail(InitialState, "%v is not the state at any revision from %d to %d", j.have, j.Earliest, min(j.Latest, j.bound(n)))
}

// bound returns the latest revision at which the watch can have been before event n.
func (j *judge[T]) bound(n int) store.Revision {
	if n == len(j.Events) {
		return j.Latest
	}
	if next := j.Events[n]; next.Type != store.Bookmark {
		return next.Revision - 1
	}
	return j.Events[n].Revision
}

// stateIs reports whether the consumer has the state at rev or, if the initial state is not
// whole, the beginning of it in key order.
func (j *judge[T]) stateIs(rev store.Revision, whole bool) bool {
	state := j.State(rev, j.Selects)
	if !whole {
		have := j.have.Keys()
		for _, key := range state.Keys()[min(len(have), len(state)):] {
			delete(state, key)
		}
	}
	return maps.Equal(state, j.have)
}
