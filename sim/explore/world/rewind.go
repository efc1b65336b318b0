package world

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// rewind takes storage back and, for Rewrite, makes other writes there. It returns when the
// engine has caught up, to which other things happen on the way in a third of the cases, or at once
// if that is to be Unnoticed.
func (w *World[T]) rewind(s script.Step) {
	if !w.goBack(s) || s.Unnoticed {
		return
	}
	w.disturbRewind(s.Seed)
	w.endRewind()
}

// endRewind lets the engine catch up with storage that has gone back, if it has.
func (w *World[T]) endRewind() {
	if !w.rewinding {
		return
	}
	w.recover()
	w.rewinding = false
	if w.windowBegan > 0 { // an engine that has not listed cannot know that it was to discard another history
		w.discarded = 0
	}
	w.windowBegan = w.engine.Stats().WindowFloor
	w.moveWatches()
}

// disturbRewind lets things happen before the engine has learned of all that storage has: its lists
// and watches fail, time passes, or storage goes back once more.
func (w *World[T]) disturbRewind(seed uint64) {
	draw := rand.New(rand.NewPCG(seed, 10))
	if draw.IntN(3) != 0 {
		return
	}
	for range 1 + draw.IntN(3) {
		w.sched.RunTurns(draw.IntN(20))
		switch draw.IntN(3) {
		case 0:
			w.clock.Advance(100 * time.Millisecond)
		case 1:
			faults := []script.Verb{script.Hangup, script.Expire, script.FailLists, script.FailWatches, script.SlowLists}
			w.do(script.Step{Do: faults[draw.IntN(len(faults))], N: 1})
		case 2:
			w.goBack(script.Step{Do: script.Rewrite, N: draw.IntN(5), Seed: draw.Uint64()})
		}
	}
}

// goBack takes storage back, and reports whether it could. The engine has not learned of that yet.
func (w *World[T]) goBack(s script.Step) bool {
	back, others := w.storage.Back(s.N), []T(nil)
	err := storage.ErrExpired
	switch {
	case s.Do == script.Rewrite:
		others = w.others(back, s.Seed)
	case s.Seed%2 == 0:
		err = storage.ErrOutage
	}
	old, oldest := w.history(), w.oldestShown()
	if err := w.storage.Rewind(back, others, err); err != nil {
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
		return false
	}
	w.rewinding, w.oldest = true, oldest
	w.former, w.restored = append(w.former, old), append(w.restored, w.newest())
	w.identify()
	w.doubtWatches()
	return true
}

// others draws the values that Rewrite writes after revision back: up to the engine's
// revision, and up to three more.
func (w *World[T]) others(back store.Revision, seed uint64) []T {
	draw := rand.New(rand.NewPCG(seed, 2))
	values := make([]T, max(w.engine.Revision(), back)-back+store.Revision(draw.IntN(4)))
	for i := range values {
		values[i] = w.cfg.Draw(draw)
	}
	return values
}

// caughtUp reports whether the engine is ready, watches the current storage and not one
// from before a rewind, and is at its newest revision.
func (w *World[T]) caughtUp() bool {
	s := w.engine.Stats()
	return s.Ready && s.Revision == w.newest() && s.Source.Phase == reflector.Watching && w.knowsStorage()
}

// knowsStorage reports whether the engine's cache is of the current storage: its identity
// begins with that of the backend.
func (w *World[T]) knowsStorage() bool {
	ctx := context.Background()
	is, err := backend.StoreID(ctx, w.engine.Backend())
	known, failed := backend.StoreID(ctx, w.engine.Source().ListerWatcher)
	return err == nil && failed == nil && strings.HasPrefix(known, is+"#")
}

// recover removes all faults from storage and lets time pass until the engine has caught
// up, for at most a minute. A slow actor stays slow for the first two seconds.
func (w *World[T]) recover() {
	w.storage.RemoveFaults()
	for round := range 600 {
		if round == 20 {
			w.sched.EndSlowness()
		}
		w.sched.SettleOthers()
		if w.checkRests(); w.sched.Stuck() {
			return
		}
		if w.caughtUp() {
			w.sched.EndSlowness()
			if w.sched.Settle(); w.caughtUp() { // still, after the turns of the slow actor
				return
			}
		}
		w.clock.Advance(100 * time.Millisecond)
	}
	s := w.engine.Stats()
	w.fail(judge.Failed(judge.Recovers, "", "storage is at %d, the engine at %d: ready %v, source %v after %v",
		w.newest(), s.Revision, s.Ready, s.Source.Phase, s.Source.LastError))
}

// fireDueTimers runs all turns there are and fires the timers that are due now. Otherwise the first
// consumer that waits would fire them, and those that were drained before it would miss
// what they cause.
func (w *World[T]) fireDueTimers() {
	for due := true; due; {
		w.sched.Settle()
		_, due = w.clock.AdvanceToNext(0)
		due = due && !w.sched.Stuck()
	}
}
