package explore

import (
	"context"
	"math/rand/v2"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// do performs step s.
func (w *World[T]) do(s script.Step) {
	switch s.Do {
	case script.Write, script.Lease, script.Remove, script.Emit:
		w.write(s)
	case script.Transact:
		w.transact(s)
	case script.Create:
		w.create(s)
	case script.RemoveIf:
		w.deleteIf(s)
	case script.Race:
		w.race(s)
	case script.Turns:
		w.sched.runN(s.N)
	case script.Settle:
		w.sched.settle()
	case script.Pass:
		for range s.N {
			w.clock.Advance(s.For)
			w.sched.runN(3)
		}
	case script.Jump:
		w.storage.clockJumped = true
		w.clock.Jump(s.For)
	case script.Get, script.List, script.Pages, script.Follow, script.NextPage:
		w.read(s)
	case script.WatchLastList:
		w.watchLastList(s)
	case script.Watch:
		w.open(s, s.Watch, *s.Start)
	case script.Resume:
		w.resume(s)
	case script.Take, script.Stop, script.Panic:
		w.consume(s)
	case script.Cancel:
		w.cancel(s)
	case script.Slow:
		w.sched.endSlowness()
		w.sched.slow = actors.ID(s.N)
	case script.Rewind, script.Rewrite:
		w.rewind(s)
	case script.Acquire, script.Fetch, script.Release:
		w.useReference(s)
	default:
		w.disturb(s)
	}
}

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
	}
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
	if c.canceled = true; w.seams.cancel == nil || !w.seams.cancel() {
		c.cancel()
	}
}

// write draws a value from the step's seed, makes the step's call and judges its result.
func (w *World[T]) write(s script.Step) {
	value := w.cfg.Draw(rand.New(rand.NewPCG(s.Seed, 1)))
	kind, o, err := w.request(s, value)
	if err != nil {
		w.trace.result(0, err)
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
		return
	}
	w.trace.result(o.Revision, nil)
	w.judgeWrite(kind, o)
}

// judgeWrite judges what a write returned.
func (w *World[T]) judgeWrite(kind store.EventType, o *engine.Object[T]) {
	if err := w.history().JudgeWrite(kind, w.historyObject(o)); err != nil {
		w.fail(err)
	}
}

// request makes the call of a step that writes. It returns the kind of the change and the
// object, of which an Emit returns no more than the revision.
func (w *World[T]) request(s script.Step, value T) (kind store.EventType, o *engine.Object[T], err error) {
	ctx := context.Background()
	o = &engine.Object[T]{Key: w.cfg.Engine.Key(value), Value: value}
	switch s.Do {
	case script.Emit:
		o.Revision, err = w.engineOfStep(s).Emit(ctx, value)
		return store.Emitted, o, err
	case script.Remove:
		if keys := w.history().State(w.newest(), everything[T]).Keys(); len(keys) > 0 {
			o, err = w.engineOfStep(s).Delete(ctx, keys[s.Seed%uint64(len(keys))], engine.DeleteOptions{})
			return store.Deleted, o, err
		}
	case script.Lease:
		o, err = w.engineOfStep(s).Update(ctx, o.Key, func(T) (T, error) { return value, nil },
			engine.UpdateOptions{CreateIfMissing: true, TTL: s.For})
		return store.Added, o, err
	}
	o, err = w.engineOfStep(s).Put(ctx, value)
	return store.Added, o, err
}

// revisionOf returns o's revision, zero for nil.
func revisionOf[T any](o *engine.Object[T]) engine.Revision {
	if o == nil {
		return 0
	}
	return o.Revision
}

func everything[T any](T) bool { return true }

// disturb performs a step that injects a fault into storage, ends one, or compacts.
func (w *World[T]) disturb(s script.Step) {
	next, lists := []faulty.Op{faulty.OpNext}, []faulty.Op{faulty.OpList}
	switch b := w.storage; s.Do {
	case script.Hangup:
		b.BreakWatches(store.ErrClosed)
	case script.Outage:
		b.BreakWatches(errOutage)
	case script.Expire:
		b.BreakWatches(errExpired)
	case script.Lose:
		b.inject(script.Lose, faulty.Rule{Ops: next, Times: 1, Do: faulty.LoseEvent()})
	case script.Repeat:
		b.inject(script.Repeat, faulty.Rule{Ops: next, Times: 1, Do: faulty.RepeatEvent()})
	case script.FailLists:
		b.inject(script.FailLists, faulty.Rule{Ops: lists, Times: s.N, Do: faulty.Fail(errOutage)})
		b.BreakWatches(errExpired)
	case script.FailWatches:
		b.inject(script.FailWatches, faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Times: s.N, Do: faulty.Fail(errOutage)})
		b.BreakWatches(errOutage)
	case script.SlowLists:
		if w.scenario.Setup.Blocks {
			b.inject(script.SlowLists, faulty.Rule{Ops: lists, Times: s.N, Do: faulty.After(b.delayed)})
		}
		b.BreakWatches(errExpired)
	case script.Block:
		b.inject(script.Block, faulty.Rule{Ops: next, Do: faulty.Hang()})
	case script.Unblock:
		b.unblock()
	case script.Compact:
		if err := b.Compact(context.Background(), w.back(s.N)); err != nil {
			w.fail(judge.Failed(judge.Refusals, "compact", "%v", err))
		}
	}
}

// back returns the revision n before the newest, and at least the first.
func (w *World[T]) back(n int) store.Revision {
	return store.Revision(max(1, int(w.newest())-n))
}

// finish removes all faults from storage, lets the engine catch up and every consumer
// read all that there is, and then judges everything.
func (w *World[T]) finish() {
	if w.recover(); w.failed != nil {
		return
	}
	w.fireDueTimers()
	w.drain()
	w.judgeWatches()
	w.sched.settle()
	w.check(w.always)
	w.check(w.finally)
	if w.failed == nil {
		w.checkServes()
		w.waitForTick()
		w.pause()
		w.pause()
		w.judgeWatches()
		w.judgeMirrors()
	}
	if w.cfg.Attach == nil && !w.scenario.Setup.Mirrored() { // Attach and the mirrors start watches that started does not have
		s := w.engine.Stats()
		if err := judge.JudgeFigures(judge.Figures{
			Living: s.Watches, SlowConsumers: s.Terminated, Deadlines: s.DeadlinesReached, Panics: s.Panicked, Expired: s.Expired,
		}, w.ends()); err != nil {
			w.fail(err)
		}
	}
}

// everythingThereIs is the step by which a consumer takes all events that are available.
var everythingThereIs = script.Step{Do: script.Take, N: 1 << 30, Turns: script.Unlimited}

// close closes the engine and judges its end: every watch has ended, for one reason, and
// no actor or timer is left.
func (w *World[T]) close() {
	w.closing = true
	for _, r := range w.started {
		if r.handle.Err() == nil && (len(r.Causes) == 0 || r.Direct) {
			r.Causes = append(r.Causes, engine.ErrEngineClosed)
		}
	}
	if err := w.engine.Close(); err != nil {
		w.fail(judge.Failed(judge.NothingLeft, "", "%v", err))
		return
	}
	if w.direct != nil {
		if err := w.direct.Close(); err != nil {
			w.fail(judge.Failed(judge.NothingLeft, "engine without cache", "%v", err))
			return
		}
	}
	for _, r := range w.started {
		if w.ended(r, r.handle.Err()); r.End() == nil {
			w.fail(judge.Failed(judge.Ends, r.Name, "it outlives the engine"))
			return
		}
		w.take(r, everythingThereIs)
	}
	w.judgeWatches()
	if err := w.storage.Close(); err != nil {
		w.fail(judge.Failed(judge.NothingLeft, "storage", "%v", err))
	}
	if err := judge.JudgeLeft(w.host.Actors(), w.host.Timers(), w.host.ActorNames()); err != nil {
		w.fail(err)
		return
	}
	w.sched.closing = true
	if err := w.host.Close(); err != nil {
		w.fail(judge.Failed(judge.NothingLeft, "host", "%v", err))
	}
}
