package world

import (
	"cmp"
	"errors"
	"slices"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// judgeRefusedWatch fails the world if a watch was refused without a cause. At rest no
// refusal is allowed.
func (w *World[T]) judgeRefusedWatch(step script.Step, r *watch[T], err error) {
	switch {
	case w.resting:
		w.fail(judge.Failed(judge.Refusals, r.Name, "%+v: %v", r.Options, err))
	case slices.ContainsFunc(w.broken(r), func(broken error) bool { return errors.Is(err, broken) }):
	case errors.Is(err, engine.ErrExpired):
		if w.mustStart(r) {
			w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the window starts at %d", err, w.floor(r)))
		}
	case r.caller.Canceled && errors.Is(err, execution.ErrCanceled), w.hasFailed(err):
	case errors.Is(err, engine.ErrIdle):
		if step.Turns == script.Unlimited && w.sched.HasTurns() {
			w.fail(judge.Failed(judge.Refusals, r.Name, "idle with turns left"))
		}
	case errors.Is(err, engine.ErrFuture):
		if needs, reached := w.needs(r); needs <= reached && r.history == w.history() && !r.ambiguous {
			w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the engine was at %d", err, reached))
		}
	case errors.Is(err, engine.ErrNotReady):
		if ready := w.wasReady(r.turns) && !r.refusable; !r.Uncached && ready || r.Uncached && !w.hasWaited(r) {
			w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the engine is ready", err))
		}
	default:
		w.fail(judge.Failed(judge.Refusals, r.Name, "%+v: %v", r.Options, err))
	}
}

// mustStart reports whether a watch that was refused as expired certainly had a revision to start
// at: the state, a number of events or the present need none that is kept. A revision between two that
// the engine has listed is not kept, but those themselves are.
func (w *World[T]) mustStart(r *watch[T]) bool {
	from := r.Options.From
	switch {
	case !w.isOfTimeline(r) || r.history != w.history() || r.ambiguous:
		return false
	case r.Uncached && (from == 0 || from > r.Earliest || r.Options.InitialState):
		return r.Earliest >= w.floor(r)
	case r.Uncached:
		return from >= w.floor(r)
	case len(w.former) > r.rewinds:
		return false
	case r.Options.InitialState, r.Options.Last > 0, from == 0 && r.acknowledged <= r.reached:
		return true
	}
	from = cmp.Or(from, r.acknowledged)
	listed := w.unfollowed() && from == w.storage.Listed && from <= r.reached
	return from >= w.floor(r) && (w.history().Received(from) || listed)
}

// unfollowed reports whether nothing uses the engine's Source, which would list storage, too.
func (w *World[T]) unfollowed() bool { return w.cfg.Attach == nil && !w.scenario.Setup.Mirrored() }

// hasWaited reports whether the start of a watch may have taken longer than the engine waits.
func (w *World[T]) hasWaited(r *watch[T]) bool {
	patience := cmp.Or(w.cfg.Engine.FreshnessTimeout, engine.DefaultFreshnessTimeout)
	return w.storage.ClockJumped || w.clock.Now().Sub(r.requestedAt) >= patience
}

// needs returns the revision that the engine of a watch must reach for the watch to start, and the one
// that it had reached when the watch was requested.
func (w *World[T]) needs(r *watch[T]) (needs, reached store.Revision) {
	needs, reached = r.Options.From, r.reached
	if r.Uncached {
		return needs, r.Earliest
	}
	if r.Options.Linearizable {
		needs = max(needs, r.Earliest)
	}
	return needs, reached
}

// ended records err, with which the watch says that it ended; nil if it has not. The first
// time it also records the causes there are for that.
func (w *World[T]) ended(r *watch[T], err error) {
	if err == nil {
		return
	}
	if len(r.Ends) == 0 {
		w.trace.End(r.id, err)
		w.noteLag(r)
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
	if r.endsByContext() {
		causes = append(causes, execution.ErrCanceled)
	}
	return append(causes, w.broken(r)...)
}

// endsByContext reports whether the watch must end because its context has.
func (r *watch[T]) endsByContext() bool { return r.caller.Canceled && !r.Options.Detached }

// mayExpire reports whether the watch may expire: the window has moved past the position
// of its consumer, or storage has gone back since the watch was requested. A
// watch that starts at a future revision waits for it at the revision where the engine was, which
// the window can pass as well, and the engine can skip the future one by a list.
func (w *World[T]) mayExpire(r *watch[T]) bool {
	if floor := w.floor(r); r.Uncached {
		return r.MayExpire(floor) || r.Earliest < min(r.Options.From, floor)
	}
	s, start := w.engine.Stats(), cmp.Or(r.Options.From, r.acknowledged)
	waited := r.reached < max(r.Options.From, r.Earliest) && r.reached < s.WindowFloor
	skipped := r.reached < start && s.Relists > r.relists && !w.history().Received(start)
	return w.mayBePassed(r, s.WindowFloor) || waited || skipped || w.outlivesHistory(r)
}

// mayBePassed reports whether the window, which begins at floor, may have moved past a watch: past events that it
// selects and has not delivered, or past events that were in no window that watches could read.
func (w *World[T]) mayBePassed(r *watch[T], floor store.Revision) bool {
	return r.MayExpire(floor) && (r.MayExpire(w.overrun) || w.history().Lacks(&r.Record, floor) > 0)
}

// noteWindow is called after each turn, and notes if the window that watches have been shown has moved past events that
// the one before did not have yet: they came and went while the engine was at work.
func (w *World[T]) noteWindow() {
	if w.engine == nil {
		return // it is about to start
	}
	s := w.engine.Stats()
	if s.Rounds == w.rounds {
		return
	}
	if s.WindowFloor > w.windowEnd {
		w.overrun = s.WindowFloor
	}
	w.windowEnd, w.rounds = s.Revision, s.Rounds
}

// noteLag records whether a watch that may be ended for it has more to deliver than its buffer. A watch with a selector
// counts what it has read of the window, too, until it has caught up, which is not known from outside.
func (w *World[T]) noteLag(r *watch[T]) {
	if r.Lagged || r.Options.Policy != engine.Terminate || r.overSeen {
		return
	}
	read := r.Record
	if !r.selected.whole() {
		read.Events = nil
	}
	buffer := cmp.Or(r.Options.Buffer, watcher.DefaultBuffer)
	r.Lagged = w.history().Lacks(&read, w.newest()) > buffer || w.outlivesHistory(r)
	r.overSeen = r.handle != nil && r.handle.Err() != nil // a handler may be called before its watch is returned
}

// noteLags is noteLag for all watches.
func (w *World[T]) noteLags() {
	for _, r := range w.started {
		w.noteLag(r)
	}
}

// mayBeDue reports whether the watch's deadline may have passed. After a clock
// correction that is unknown.
func (w *World[T]) mayBeDue(r *watch[T]) bool {
	timeout := r.Options.Timeout
	return timeout > 0 && (w.storage.ClockJumped || !w.clock.Now().Before(r.requestedAt.Add(timeout)))
}

// isDue reports whether the watch's deadline has certainly passed.
func (w *World[T]) isDue(r *watch[T]) bool {
	timeout := r.Options.Timeout
	return timeout > 0 && !w.storage.ClockJumped && !w.clock.Now().Before(r.startedAt.Add(timeout))
}

// ends returns why each watch of the engine with the cache ended, nil for those that have
// not.
func (w *World[T]) ends() []error {
	ends := make([]error, 0, len(w.started))
	for _, r := range w.started {
		if !r.Uncached {
			ends = append(ends, r.End())
		}
	}
	return ends
}

// judgeWatches judges every watch by its history.
func (w *World[T]) judgeWatches() {
	for _, r := range w.started {
		if err := w.judgeWatch(r); err != nil {
			w.fail(err)
			return
		}
	}
}
