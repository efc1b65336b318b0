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
	o, err := w.engine.Create(context.Background(), value)
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
	o, err := w.engine.Delete(context.Background(), key, engine.DeleteOptions{Preconditions: meant})
	w.trace.result(w.newest(), err)
	w.refuses(s, err, engine.ErrPrecondition, meant.Revision != w.history().Shown(since))
	if err == nil {
		w.wrote(store.Deleted, o)
	}
}

// refuses: a write is refused for a reason exactly if that is due.
func (w *World[T]) refuses(s Step, err, reason error, due bool) {
	switch {
	case due && !errors.Is(err, reason):
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "it should fail as %v, but: %v", reason, err))
	case !due && err != nil:
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
	}
}
