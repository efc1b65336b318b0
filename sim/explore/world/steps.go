package world

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
)

// do performs step s.
func (w *World[T]) do(s script.Step) {
	defer func(calls, lists uint64) { w.failedCalls, w.failedLists = calls, lists }(w.failedCalls, w.failedLists)
	w.failedCalls, w.failedLists = w.storage.FailedCalls, w.storage.FailedLists
	w.storage.BeginStep()
	switch s.Do {
	case script.Write, script.Lease, script.Remove, script.Emit:
		w.write(s)
	case script.Transact:
		w.transact(s)
	case script.Create:
		w.create(s)
	case script.Change, script.RemoveIf, script.Race:
		w.writeOnCondition(s)
	case script.Turns:
		w.sched.RunTurns(s.N)
	case script.Settle:
		w.sched.Settle()
	case script.Pass:
		for range s.N {
			w.clock.Advance(s.For)
			w.sched.RunTurns(3)
		}
	case script.Jump:
		w.storage.ClockJumped = true
		w.clock.Jump(s.For)
	case script.Get, script.List, script.WaitFor, script.Pages, script.Follow, script.NextPage:
		w.read(s)
	case script.WatchLastList:
		w.watchLastList(s)
	case script.Watch:
		w.open(s, s.Watch, *s.Start)
	case script.Resume:
		w.resume(s)
	case script.Take, script.Stop, script.Panic, script.Fail:
		w.consume(s)
	case script.Cancel:
		w.cancel(s)
	case script.Slow:
		w.sched.MakeSlow(actors.ID(s.N))
	case script.Rewind, script.Rewrite:
		w.rewind(s)
	case script.Recover:
		w.endRewind()
	case script.Discard:
		w.wait(s, s.For, func(ctx context.Context) { w.discard(ctx, s) })
	case script.Subscribe:
		w.subscribe(s)
	case script.Index:
		w.addIndex()
	case script.Acquire, script.Fetch, script.Release:
		w.useReference(s)
	default:
		if err := w.storage.Disturb(s); err != nil {
			w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
		}
	}
}

// writeOnCondition performs a step that writes if the object is as the call demands.
func (w *World[T]) writeOnCondition(s script.Step) {
	if w.mayMistakeObject(s) {
		return
	}
	switch s.Do {
	case script.Change:
		w.change(s)
	case script.RemoveIf:
		w.deleteIf(s)
	case script.Race:
		w.race(s)
	}
}

// hasFailed reports whether a call has returned err since FailCalls has made one of its calls of storage fail.
func (w *World[T]) hasFailed(err error) bool {
	return errors.Is(err, storage.ErrOutage) && w.storage.FailedCalls > w.failedCalls
}

// cancel ends the context of the call that is under way or, if there is none, that of the
// step's watch.
func (w *World[T]) cancel(s script.Step) {
	c := w.calling
	if r := w.watches[s.Watch]; c == nil && r != nil {
		c = r.caller
	}
	if c == nil {
		return
	}
	c.Canceled = true
	if w.seams.cancel == nil || !w.seams.cancel() {
		c.Cancel()
	}
}
