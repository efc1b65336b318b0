package world

import (
	"errors"
	"slices"

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
		floor := w.floor(r)
		if w.isOfTimeline(r) && r.history == w.history() && r.Options.From >= floor && (r.Uncached || w.history().Received(r.Options.From)) {
			w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the window starts at %d", err, floor))
		}
	case r.caller.Canceled && errors.Is(err, execution.ErrCanceled):
	case errors.Is(err, engine.ErrIdle):
		if step.Turns == script.Unlimited && w.sched.HasTurns() {
			w.fail(judge.Failed(judge.Refusals, r.Name, "idle with turns left"))
		}
	case errors.Is(err, engine.ErrFuture):
		if needs, reached := w.needs(r); needs <= reached && r.history == w.history() {
			w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the engine was at %d", err, reached))
		}
	case errors.Is(err, engine.ErrNotReady):
		if !r.Uncached && w.wasReady(r.turns) {
			w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the engine is ready", err))
		}
	default:
		w.fail(judge.Failed(judge.Refusals, r.Name, "%+v: %v", r.Options, err))
	}
}

// needs returns the revision that the engine of a watch must reach for the watch to start, and the one
// that it had reached when the watch was requested.
func (w *World[T]) needs(r *watch[T]) (needs, reached store.Revision) {
	if needs, reached = r.Options.From, r.reached; r.Uncached {
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
// of its consumer, or the engine has listed since the watch was requested and may have
// found that storage has another history. A watch that starts at a future revision waits
// for it at the revision where the engine was, which the window can pass as well.
func (w *World[T]) mayExpire(r *watch[T]) bool {
	if floor := w.floor(r); r.Uncached {
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
		if r.history == old && r.handle.Err() == nil && !r.Uncached {
			r.history = w.history()
			r.Claims = slices.DeleteFunc(r.Claims, func(c judge.Claim) bool { return c.Revision > w.newest() })
		}
	}
}
