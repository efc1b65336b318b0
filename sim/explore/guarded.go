package explore

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// create writes a value under a key that must be free.
func (w *World[T]) create(s Step) {
	value := w.cfg.Draw(rand.New(rand.NewPCG(s.Seed, 1)))
	_, _, taken := w.history().Get(w.cfg.Engine.Key(value))
	o, err := w.by(s).Create(context.Background(), value)
	w.trace.result(revisionOf(o), err)
	w.refuses(s, err, engine.ErrExists, taken)
	if err == nil {
		w.wrote(store.Added, o)
	}
}

// deleteIf deletes an object that must be at the revision N before the one that it
// is at.
func (w *World[T]) deleteIf(s Step) {
	keys := w.history().State(w.newest(), everything[T]).Keys()
	if len(keys) == 0 {
		return
	}
	key := keys[s.Seed%uint64(len(keys))]
	_, since, _ := w.history().Get(key)
	meant := engine.Preconditions{Revision: w.history().Shown(store.Revision(max(1, int(since)-s.N)))}
	o, err := w.by(s).Delete(context.Background(), key, engine.DeleteOptions{Preconditions: meant})
	w.trace.result(w.newest(), err)
	w.refuses(s, err, engine.ErrPrecondition, meant.Revision != w.history().Shown(since))
	if err == nil {
		w.wrote(store.Deleted, o)
	}
}

// race has two write one key. The one that loses is refused if it depends on what the
// other has replaced, and otherwise goes on from that.
func (w *World[T]) race(s Step) {
	draw := rand.New(rand.NewPCG(s.Seed, 1))
	mine := w.cfg.Draw(draw)
	key := w.cfg.Engine.Key(mine)
	_, since, known := w.history().Get(key)
	meant := w.history().Shown(since)
	if s.N == 2 && known {
		overtaken := w.rival(draw, key)
		o, err := w.by(s).Replace(context.Background(), mine, meant)
		w.raced(s, o, err, engine.ErrConflict, overtaken)
		return
	}
	opts := engine.UpdateOptions{CreateIfMissing: true}
	if s.N == 1 && known {
		opts.Preconditions.Revision = meant
	}
	calls, overtaken, stale := 0, false, false
	o, err := w.by(s).Update(context.Background(), key, func(current T) (T, error) {
		if calls++; calls == 1 {
			overtaken = w.rival(draw, key)
			stale = overtaken
			return mine, nil
		}
		newest, _, _ := w.history().Get(key)
		stale = !w.same(current, newest)
		return mine, nil
	}, opts)
	w.raced(s, o, err, engine.ErrConflict, overtaken && opts.Preconditions.Revision != 0)
	if err == nil && stale {
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "an update of %q was made from what another write had replaced", key))
	}
}

// rival has the other engine, if there is one, store a value under the key, and reports
// whether the object is another since.
func (w *World[T]) rival(draw *rand.Rand, key string) bool {
	value := w.cfg.Draw(draw)
	for range 100 {
		if w.cfg.Engine.Key(value) == key {
			break
		}
		value = w.cfg.Draw(draw)
	}
	before := w.newest()
	o, err := w.by(Step{Direct: true}).Put(context.Background(), value)
	w.raced(Step{Do: Race}, o, err, engine.ErrConflict, false)
	return w.newest() > before && w.cfg.Engine.Key(value) == key
}

// raced judges what a write of a race returned, which is refused for a reason exactly
// if that is due.
func (w *World[T]) raced(s Step, o *engine.Object[T], err, reason error, due bool) {
	w.trace.result(revisionOf(o), err)
	if w.refuses(s, err, reason, due); err == nil {
		w.wrote(store.Added, o)
	}
}

// by returns the engine that a step writes or reads by.
func (w *World[T]) by(s Step) *engine.Engine[T] {
	if s.Direct && w.direct != nil {
		return w.direct
	}
	return w.engine
}

// same reports whether two values are equal.
func (w *World[T]) same(a, b T) bool { return equal(w.cfg.Engine.Equal)(a, b) }

// refuses: a write is refused for a reason exactly if that is due.
func (w *World[T]) refuses(s Step, err, reason error, due bool) {
	switch {
	case due && !errors.Is(err, reason):
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "it should fail as %v, but: %v", reason, err))
	case !due && err != nil:
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
	}
}
