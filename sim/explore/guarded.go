package explore

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// create creates an object, which must be refused exactly if its key has one.
func (w *World[T]) create(s script.Step) {
	value := w.cfg.Draw(rand.New(rand.NewPCG(s.Seed, 1)))
	_, _, taken := w.history().Get(w.cfg.Engine.Key(value))
	o, err := w.engineOfStep(s).Create(context.Background(), value)
	w.trace.result(revisionOf(o), err)
	w.judgeRefusal(s, err, engine.ErrExists, taken)
	if err == nil {
		w.judgeWrite(store.Added, o)
	}
}

// deleteIf deletes an object on the condition that its revision is N less than it is, which
// must be refused unless N is zero.
func (w *World[T]) deleteIf(s script.Step) {
	keys := w.history().State(w.newest(), everything[T]).Keys()
	if len(keys) == 0 {
		return
	}
	key := keys[s.Seed%uint64(len(keys))]
	_, since, _ := w.history().Get(key)
	meant := engine.Preconditions{Revision: w.history().Shown(store.Revision(max(1, int(since)-s.N)))}
	o, err := w.engineOfStep(s).Delete(context.Background(), key, engine.DeleteOptions{Preconditions: meant})
	w.trace.result(w.newest(), err)
	w.judgeRefusal(s, err, engine.ErrPrecondition, meant.Revision != w.history().Shown(since))
	if err == nil {
		w.judgeWrite(store.Deleted, o)
	}
}

// race has two writers of one key: see [Race]. The first must be refused if it requires the
// revision that the second has replaced, and must otherwise update what the second wrote.
func (w *World[T]) race(s script.Step) {
	draw := rand.New(rand.NewPCG(s.Seed, 1))
	mine := w.cfg.Draw(draw)
	key := w.cfg.Engine.Key(mine)
	_, since, known := w.history().Get(key)
	meant := w.history().Shown(since)
	if s.N == 2 && known {
		overtaken := w.writeAsRival(draw, key)
		o, err := w.engineOfStep(s).Replace(context.Background(), mine, meant)
		w.judgeRacedWrite(s, o, err, engine.ErrConflict, overtaken)
		return
	}
	opts := engine.UpdateOptions{CreateIfMissing: true}
	if s.N == 1 && known {
		opts.Preconditions.Revision = meant
	}
	calls, overtaken, stale := 0, false, false
	o, err := w.engineOfStep(s).Update(context.Background(), key, func(current T) (T, error) {
		if calls++; calls == 1 {
			overtaken = w.writeAsRival(draw, key)
			stale = overtaken
			return mine, nil
		}
		newest, _, _ := w.history().Get(key)
		stale = !w.same(current, newest)
		return mine, nil
	}, opts)
	w.judgeRacedWrite(s, o, err, engine.ErrConflict, overtaken && opts.Preconditions.Revision != 0)
	if err == nil && stale {
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "an update of %q was made from what another write had replaced", key))
	}
}

// writeAsRival stores a value under the key through the engine without a cache, if there is one,
// and reports whether that has changed the object.
func (w *World[T]) writeAsRival(draw *rand.Rand, key string) bool {
	value := w.cfg.Draw(draw)
	for range 100 {
		if w.cfg.Engine.Key(value) == key {
			break
		}
		value = w.cfg.Draw(draw)
	}
	before := w.newest()
	o, err := w.engineOfStep(script.Step{Direct: true}).Put(context.Background(), value)
	w.judgeRacedWrite(script.Step{Do: script.Race}, o, err, engine.ErrConflict, false)
	return w.newest() > before && w.cfg.Engine.Key(value) == key
}

// judgeRacedWrite judges the result of a write of a race, which must fail with reason exactly if due
// is set.
func (w *World[T]) judgeRacedWrite(s script.Step, o *engine.Object[T], err, reason error, due bool) {
	w.trace.result(revisionOf(o), err)
	if w.judgeRefusal(s, err, reason, due); err == nil {
		w.judgeWrite(store.Added, o)
	}
}

// engineOfStep returns the engine through which a step writes or reads.
func (w *World[T]) engineOfStep(s script.Step) *engine.Engine[T] {
	if s.Direct && w.direct != nil {
		return w.direct
	}
	return w.engine
}

// same reports whether two values are equal.
func (w *World[T]) same(a, b T) bool { return equal(w.cfg.Engine.Equal)(a, b) }

// judgeRefusal fails the world unless err is reason where due is set, and nil where it is not.
func (w *World[T]) judgeRefusal(s script.Step, err, reason error, due bool) {
	switch {
	case due && !errors.Is(err, reason):
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "it should fail as %v, but: %v", reason, err))
	case !due && err != nil:
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
	}
}
