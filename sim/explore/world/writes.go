package world

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// write draws a value from the step's seed, makes the step's call and judges its result.
func (w *World[T]) write(s script.Step) {
	value := w.cfg.Draw(rand.New(rand.NewPCG(s.Seed, 1)))
	kind, o, err := w.requestWrite(s, value)
	if err != nil {
		w.trace.Result(0, err)
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
		return
	}
	w.trace.Result(o.Revision, nil)
	w.judgeWrite(kind, o)
}

// judgeWrite judges what a write returned.
func (w *World[T]) judgeWrite(kind store.EventType, o *engine.Object[T]) {
	if err := w.history().JudgeWrite(kind, w.historyObject(o)); err != nil {
		w.fail(err)
	}
}

// requestWrite makes the call of a step that writes. It returns the kind of the change and the
// object, of which an Emit returns no more than the revision.
func (w *World[T]) requestWrite(s script.Step, value T) (kind store.EventType, o *engine.Object[T], err error) {
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

// create creates an object, which must be refused exactly if its key has one.
func (w *World[T]) create(s script.Step) {
	value := w.cfg.Draw(rand.New(rand.NewPCG(s.Seed, 1)))
	_, _, taken := w.history().Get(w.cfg.Engine.Key(value))
	o, err := w.engineOfStep(s).Create(context.Background(), value)
	w.trace.Result(revisionOf(o), err)
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
	w.trace.Result(w.newest(), err)
	w.judgeRefusal(s, err, engine.ErrPrecondition, meant.Revision != w.history().Shown(since))
	if err == nil {
		w.judgeWrite(store.Deleted, o)
	}
}

// race has two writers of one key: see [script.Race]. The first must be refused if it
// requires the revision that the second has replaced, and must otherwise update what the
// second wrote.
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
		stale = !w.storage.Equal(current, newest)
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
	o, err := w.engineOfStep(script.Step{Uncached: true}).Put(context.Background(), value)
	w.judgeRacedWrite(script.Step{Do: script.Race}, o, err, engine.ErrConflict, false)
	return w.newest() > before && w.cfg.Engine.Key(value) == key
}

// judgeRacedWrite judges the result of a write of a race, which must fail with reason exactly if due
// is set.
func (w *World[T]) judgeRacedWrite(s script.Step, o *engine.Object[T], err, reason error, due bool) {
	w.trace.Result(revisionOf(o), err)
	if w.judgeRefusal(s, err, reason, due); err == nil {
		w.judgeWrite(store.Added, o)
	}
}

// engineOfStep returns the engine through which a step writes or reads.
func (w *World[T]) engineOfStep(s script.Step) *engine.Engine[T] {
	if s.Uncached && w.uncached != nil {
		return w.uncached
	}
	return w.engine
}

// judgeRefusal fails the world unless err is reason where due is set, and nil where it is not.
func (w *World[T]) judgeRefusal(s script.Step, err, reason error, due bool) {
	switch {
	case due && !errors.Is(err, reason):
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "it should fail as %v, but: %v", reason, err))
	case !due && err != nil:
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
	}
}
