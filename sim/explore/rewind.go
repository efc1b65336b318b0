package explore

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// rewind takes storage back, or back and forth again with other writes.
func (w *World[T]) rewind(s Step) {
	back, others := w.back(s.N), []T(nil)
	err := errExpired
	switch {
	case s.Do == Rewrite:
		others = w.others(back, s.Seed)
	case s.Seed%2 == 0:
		err = errOutage
	}
	old := w.history()
	if err := w.storage.rewind(back, others, err); err != nil {
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
		return
	}
	w.former = append(w.former, old)
	w.restored = w.newest()
	w.rewinding = true
	w.recover()
	w.rewinding = false
	w.follow(old)
}

// others draws what is written after revision back instead of what was: in most cases
// up to the revision that the engine is at, or beyond.
func (w *World[T]) others(back store.Revision, seed uint64) []T {
	draw := rand.New(rand.NewPCG(seed, 2))
	values := make([]T, max(w.engine.Revision(), back)-back+store.Revision(draw.IntN(4)))
	for i := range values {
		values[i] = w.cfg.Draw(draw)
	}
	return values
}

// caughtUp reports whether the engine is where storage is, that storage and none
// before it, and says that all is well.
func (w *World[T]) caughtUp() bool {
	s := w.engine.Stats()
	return s.Ready && s.Revision == w.newest() && s.Source.Phase == reflector.Watching && w.knowsStorage()
}

// knowsStorage reports whether the engine's cache is of the storage that there is.
func (w *World[T]) knowsStorage() bool {
	ctx := context.Background()
	is, err := backend.StoreID(ctx, w.engine.Backend())
	known, failed := backend.StoreID(ctx, w.engine.Source().ListerWatcher)
	return err == nil && failed == nil && strings.HasPrefix(known, is+"#")
}

// recover makes storage good, and lets time pass until the engine has caught up
// with it. An actor that is slow is not waited for at first.
func (w *World[T]) recover() {
	w.storage.heal()
	for round := range 600 {
		if round == 20 {
			w.sched.hurry()
		}
		w.sched.settleOthers()
		if w.rests(); w.sched.stuck() {
			return
		}
		if w.caughtUp() {
			w.sched.hurry()
			if w.sched.settle(); w.caughtUp() { // with what the slow one knew
				return
			}
		}
		w.clock.Advance(100 * time.Millisecond)
	}
	s := w.engine.Stats()
	w.fail(judge.Failed(judge.Recovers, "", "storage is at %d, the engine at %d: ready %v, source %v after %v",
		w.newest(), s.Revision, s.Ready, s.Source.Phase, s.Source.LastError))
}

// calm lets the engine have all turns there are, and fires the timers that are due
// now: else the first consumer that waits would, when others have been asked
// already.
func (w *World[T]) calm() {
	for due := true; due; {
		w.sched.settle()
		_, due = w.clock.toNext(0)
		due = due && !w.sched.stuck()
	}
}
