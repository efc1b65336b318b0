package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// drainTime is the most virtual time that a drain takes once storage has no faults.
const drainTime = 10 * time.Minute

// drainAll drains the engine, and then the one without a cache, if there is one, while consumers read, whatever
// they are in the middle of. A write that comes meanwhile must be refused. Afterwards everything that storage
// had acknowledged has been delivered, unless the context of a drain has ended.
func (w *World[T]) drainAll() {
	if !w.scenario.Impatient || w.scenario.Seed%2 == 0 {
		w.storage.RemoveFaults()
		w.endFailures()
	}
	w.closing = true
	follows, expired := w.informerFollows(), w.engine.Stats().Expired
	through := w.drainEngine(w.engine)
	if w.uncached != nil && w.failed == nil {
		w.drainEngine(w.uncached)
	}
	w.fireDueTimers()
	w.drain()
	w.judgeWatches()
	w.judgeFigures()
	if follows && w.engine.Stats().Expired == expired && w.failed == nil && !w.scenario.Impatient {
		w.judgeInformerThrough(through)
	}
}

// drainEngine drains an engine. Each of its watches that is ended by that must have had everything up to the
// revision that it returns, unless the context of the drain has ended.
func (w *World[T]) drainEngine(e *engine.Engine[T]) (through store.Revision) {
	acknowledged, open := w.newest(), []*watch[T](nil)
	for _, r := range w.started {
		if r.handle.Err() == nil && w.engineOf(r) == e {
			r.Causes = append(r.Causes, engine.ErrEngineClosed)
			open = append(open, r)
		}
	}
	d := newDrain(w, e, open)
	err := w.drainWhileReading(d, func() { acknowledged = max(acknowledged, w.writeWhileDraining(e)) })
	if open = d.open; err != nil && d.cut {
		open = w.judgeCutDrain(d, err)
	} else if err != nil || d.early {
		w.fail(judge.Failed(judge.Conserved, "drain", "%v", err))
	}
	through = acknowledged
	if e == w.engine {
		through = w.shownAfter(acknowledged)
	}
	for _, r := range open {
		if errors.Is(r.handle.Err(), engine.ErrEngineClosed) && r.history == w.history() {
			r.Through = through
			if w.history().Received(acknowledged) && !r.isBeyond(acknowledged) {
				r.Through = acknowledged // what the engine has listed since need not have been delivered
			}
		}
	}
	return through
}

// isBeyond reports whether the consumer has received an event of a revision after rev.
func (r *watch[T]) isBeyond(rev store.Revision) bool {
	n := len(r.Events)
	return n > 0 && r.Events[n-1].Revision > rev
}

// writeWhileDraining makes a write that the engine must refuse. If it does not, it has acknowledged the
// revision that is returned, and must deliver that.
func (w *World[T]) writeWhileDraining(e *engine.Engine[T]) (acknowledged store.Revision) {
	before := w.newest()
	o, err := e.Put(context.Background(), w.cfg.Draw(rand.New(rand.NewPCG(w.scenario.Seed, 7))))
	w.trace.Result(revisionOf(o), err)
	switch {
	case err != nil && !errors.Is(err, engine.ErrEngineClosed):
		w.fail(judge.Failed(judge.Refusals, "drain", "a write meanwhile: %v", err))
	case err != nil && w.newest() > before:
		w.fail(judge.Failed(judge.Acknowledged, "drain", "a write meanwhile was made, and refused: %v", err))
	}
	return revisionOf(o)
}

// shownAfter returns the first revision from rev on whose state watches have shown: the engine may have
// listed storage, and so have left out some.
func (w *World[T]) shownAfter(rev store.Revision) store.Revision {
	for rev < w.engine.Revision() && !w.history().Received(rev+1) {
		rev++
	}
	return rev
}

// drainWhileReading drains an engine, and calls meanwhile in the middle of that. Consumers read when it would
// otherwise be idle, and time passes when they have nothing to read.
//
// An impatient caller's context ends then, too, or has before.
func (w *World[T]) drainWhileReading(d *drain[T], refused func()) (err error) {
	left := drainTime
	idle := func() bool {
		return !w.sched.InTurn() && (w.readSome() || w.sched.HasTurns()) || w.passToNext(&left)
	}
	after := rand.New(rand.NewPCG(w.scenario.Seed, 8)).IntN(20)
	meanwhile := func() {
		refused()
		d.end(w)
	}
	w.sched.Wait(execution.Waiting{Patience: script.Unlimited, Idle: idle, Meanwhile: meanwhile, After: after}, func() {
		err = d.call(w)
	})
	return err
}

// readSome lets each consumer take a few events, and reports whether one has. One that finds none may have told the
// engine that it has everything.
func (w *World[T]) readSome() (some bool) {
	for _, r := range w.started {
		if len(r.Ends) > 0 {
			continue // it knows that there is no more
		}
		before := len(r.Events)
		w.take(r, script.Step{Do: script.Take, N: 3})
		some = some || len(r.Events) > before || len(r.Ends) > 0
	}
	return some
}

// informerFollows reports whether the engine has a watch for the informer, which a drain serves like any other, that
// has not expired. An informer that has lost its watch may not get another one in time.
func (w *World[T]) informerFollows() bool {
	floor := w.engine.Stats().WindowFloor
	return slices.ContainsFunc(w.engine.Watches(), func(i engine.WatchInfo) bool {
		return i.Name == "informer informer" && i.Revision >= floor
	})
}

// judgeInformerThrough compares the informer with the state at rev, or at the later revision that it has. It need
// not know of a revision without a change of an object.
func (w *World[T]) judgeInformerThrough(rev store.Revision) {
	rev = max(rev, w.snapshot().Revision())
	if !w.history().Received(rev) {
		return
	}
	w.fail(w.judgeInformerAt(rev))
}
