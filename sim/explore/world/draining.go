package world

import (
	"context"
	"errors"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// drainTime is the most virtual time that a drain takes once storage has no faults.
const drainTime = 10 * time.Minute

// drainEngine drains the engine while consumers read, whatever it is in the middle of. Each watch that
// is ended by that must have had everything that storage had acknowledged before.
func (w *World[T]) drainEngine() {
	w.storage.RemoveFaults()
	w.endFailures()
	w.closing = true
	acknowledged, open := w.newest(), []*watch[T](nil)
	for _, r := range w.started {
		if r.handle.Err() == nil && !r.Uncached {
			r.Causes = append(r.Causes, engine.ErrEngineClosed)
			open = append(open, r)
		}
	}
	if err := w.drainWhileReading(); err != nil {
		w.fail(judge.Failed(judge.Conserved, "drain", "%v", err))
		return
	}
	through := w.shownAfter(acknowledged)
	for _, r := range open {
		if errors.Is(r.handle.Err(), engine.ErrEngineClosed) {
			r.Through = through
		}
	}
	w.endRetries() // those of the engine without a cache, which goes on
	w.fireDueTimers()
	w.drain()
	w.judgeWatches()
}

// shownAfter returns the first revision from rev on whose state watches have shown: the engine may have
// listed storage, and so have left out some.
func (w *World[T]) shownAfter(rev store.Revision) store.Revision {
	for rev < w.engine.Revision() && !w.history().Received(rev+1) {
		rev++
	}
	return rev
}

// drainWhileReading drains the engine. Consumers read when it would otherwise be idle, and time passes
// when they have nothing to read.
func (w *World[T]) drainWhileReading() (err error) {
	left := drainTime
	idle := func() bool { return !w.sched.InTurn() && w.readSome() || w.passToNext(&left) }
	w.sched.Wait(execution.Waiting{Patience: script.Unlimited, Idle: idle}, func() {
		if w.seams.drain != nil {
			err = w.seams.drain(w)
			return
		}
		err = w.engine.Drain(context.Background())
	})
	return err
}

// readSome lets each consumer take a few events, and reports whether one has.
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
