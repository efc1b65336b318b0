package explore

import (
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// rewind takes storage back, or back and forth again with other writes. Nothing
// else is written until the engine has noticed: a storage that has overtaken it
// meanwhile cannot be told from one that went straight on.
func (w *World[T]) rewind(s Step) {
	back, others := w.back(s.N), []T(nil)
	err := errExpired
	switch {
	case s.Do == Rewrite:
		if others = w.others(back, s.Seed); len(others) == 0 {
			return
		}
	case s.Seed%2 == 0:
		err = errOutage
	}
	old, lists := w.history(), w.engine.Stats().Source.Lists
	if s.Do == Rewrite {
		lists++
	}
	if err := w.storage.rewind(back, others, err); err != nil {
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
		return
	}
	w.restored = w.newest()
	w.rewinding = true
	w.storage.restore(true)
	w.recover(lists)
	w.storage.restore(false)
	w.rewinding = false
	w.follow(old)
}

// others draws what is written after revision back instead of what was, up to
// the revision that the engine is at; nothing if it could not notice that: then
// it has heard of nothing after back, or asks for what comes next without
// listing, or the newest object is as new as before.
func (w *World[T]) others(back store.Revision, seed uint64) []T {
	w.sched.settle()
	s := w.engine.Stats()
	if !s.Ready || s.Source.Phase != reflector.Watching || s.Revision <= back {
		return nil
	}
	draw := rand.New(rand.NewPCG(seed, 2))
	values := make([]T, s.Revision-back)
	for i := range values {
		values[i] = w.cfg.Draw(draw)
	}
	if _, was, _ := w.history().At(w.cfg.Engine.Key(values[len(values)-1]), s.Revision); was == s.Revision {
		return nil
	}
	return values
}

// caughtUp reports whether the engine is where storage is, having listed so often,
// and says that all is well.
func (w *World[T]) caughtUp(lists uint64) bool {
	s := w.engine.Stats()
	return s.Ready && s.Revision == w.newest() && s.Source.Phase == reflector.Watching && s.Source.Lists >= lists
}

// recover makes storage good, and lets time pass until the engine has caught up
// with it, having listed so often. An actor that is slow is not waited for at
// first.
func (w *World[T]) recover(lists uint64) {
	w.storage.heal()
	for round := range 600 {
		if round == 20 {
			w.sched.hurry()
		}
		w.sched.settleOthers()
		if w.rests(); w.sched.stuck() {
			return
		}
		if w.caughtUp(lists) {
			w.sched.hurry()
			if w.sched.settle(); w.caughtUp(lists) { // with what the slow one knew
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
