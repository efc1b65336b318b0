package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// asked is a change that a call asks for.
type asked[T any] struct {
	kind store.EventType
	key  string
	// value is what is to be stored or emitted; nil for a deletion.
	value *T
	// expires is when the object under key expires afterwards; the zero time means never.
	expires time.Time
	// leaves is the revision of the object that must stay as it is, since it has an equal value; zero
	// if there is none.
	leaves store.Revision
}

// changeTo returns the change that a write of value asks for. It leaves the object to expire when it would
// have, unless it gives it a TTL.
func (w *World[T]) changeTo(value T, ttl time.Duration) asked[T] {
	a := asked[T]{kind: store.Added, key: w.cfg.Engine.Key(value), value: &value}
	a.expires = w.storage.Expiry(a.key)
	if ttl > 0 {
		a.expires = w.clock.Now().Add(ttl)
	} else {
		a.leaves = w.equalTo(a.key, value)
	}
	return a
}

// equalTo returns the revision of the object under key if that has an equal value, otherwise zero. It
// does not know what is equal if the configuration changes values that are written.
func (w *World[T]) equalTo(key string, value T) store.Revision {
	current, since, known := w.history().Get(key)
	c := &w.cfg.Engine
	if !known || c.Carry != nil || c.SetRevision != nil || !w.storage.Equal(current, value) {
		return 0
	}
	return since
}

// write draws a value from the step's seed, makes the step's call and judges its result.
func (w *World[T]) write(s script.Step) {
	if w.mayMistakeObject(s) {
		return
	}
	value := w.cfg.Draw(rand.New(rand.NewPCG(s.Seed, 1)))
	before := w.newest()
	a, o, err := w.requestWrite(s, value)
	w.trace.Result(revisionOf(o), err)
	switch _, since, _ := w.history().Get(a.key); {
	case w.isUnanswered(s, a, err):
	case err == nil:
		w.judgeWrite(a, o)
	case !w.hasFailed(err):
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
	case since > before:
		w.fail(judge.Failed(judge.Acknowledged, s.Do.String(), "%q was written, in spite of: %v", a.key, err))
	}
}

// judgeWrite judges a write that was to make the change a by what it returned and by what the
// history has.
func (w *World[T]) judgeWrite(a asked[T], o *engine.Object[T]) {
	err := w.history().JudgeWrite(a.kind, w.historyObject(o))
	expires, revision := w.storage.Expiry(a.key), w.newest()
	_, since, _ := w.history().Get(a.key)
	switch {
	case err != nil:
		w.fail(err)
	case a.kind == store.Added && a.leaves != 0 && since != a.leaves:
		w.fail(judge.Failed(judge.Acknowledged, a.kind.String(), "%q had an equal value, and was written", a.key))
	case o.Key != a.key:
		w.fail(judge.Failed(judge.Acknowledged, a.kind.String(), "it was to change %q, and has changed %q", a.key, o.Key))
	case a.value != nil && !w.storage.Equal(o.Value, w.written(*a.value)):
		w.fail(judge.Failed(judge.Acknowledged, a.kind.String(), "%q was to become %v, and is %v", a.key, *a.value, o.Value))
	case a.kind == store.Added && !o.Expires.Equal(expires):
		w.fail(judge.Failed(judge.Acknowledged, a.kind.String(), "%q is said to expire at %v, and expires at %v", a.key, o.Expires, expires))
	case a.kind != store.Emitted && w.history().RevisionOf(a.key, o.Revision) == revision && w.storage.Age(revision) == 0 && !o.Written.Equal(w.clock.Now()):
		w.fail(judge.Failed(judge.Acknowledged, a.kind.String(), "%q is said to be written at %v, and was at %v", a.key, o.Written, w.clock.Now()))
	case !expires.Equal(a.expires):
		w.fail(judge.Failed(judge.Expires, a.kind.String(), "%q was to expire at %v, and expires at %v", a.key, a.expires, expires))
	}
}

// written returns what a value becomes when it is written: the configuration may add something of the
// context.
func (w *World[T]) written(value T) T {
	if carry := w.cfg.Engine.Carry; carry != nil {
		return carry(context.Background(), value)
	}
	return value
}

// requestWrite makes the call of a step that writes. It returns the change that the call asks for,
// and the object that it has returned; an Emit returns no more of that than the revision.
func (w *World[T]) requestWrite(s script.Step, value T) (a asked[T], o *engine.Object[T], err error) {
	ctx, e := context.Background(), w.writer(s)
	switch s.Do {
	case script.Emit:
		a = w.changeTo(value, 0)
		a.kind = store.Emitted
		rev, err := e.Emit(ctx, value)
		if err != nil {
			return a, nil, err
		}
		return a, &engine.Object[T]{Key: a.key, Value: w.written(value), Revision: rev}, nil
	case script.Remove:
		if keys := w.history().State(w.newest(), everything[T]).Keys(); len(keys) > 0 {
			a = asked[T]{kind: store.Deleted, key: keys[s.Seed%uint64(len(keys))]}
			o, err = e.Delete(ctx, a.key, engine.DeleteOptions{})
			return a, o, err
		}
	case script.Lease:
		a = w.changeTo(value, s.For)
		o, err = w.lease(s, a)
		return a, o, err
	}
	a = w.changeTo(value, 0)
	o, err = e.Put(ctx, value)
	return a, o, err
}

// lease stores a value with a TTL, by one of the calls that can.
func (w *World[T]) lease(s script.Step, a asked[T]) (*engine.Object[T], error) {
	ctx, e, value := context.Background(), w.writer(s), *a.value
	switch rand.New(rand.NewPCG(s.Seed, 6)).IntN(3) {
	case 0:
		return e.PutWith(ctx, value, engine.PutOptions{TTL: s.For})
	case 1:
		return e.Modify(ctx, a.key, func(*engine.Object[T]) (engine.Change[T], error) {
			return engine.Change[T]{Value: value, TTL: s.For}, nil
		}, engine.ModifyOptions{CreateIfMissing: true})
	}
	return e.Update(ctx, a.key, func(T) (T, error) { return value, nil }, engine.UpdateOptions{CreateIfMissing: true, TTL: s.For})
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
	a := w.changeTo(value, 0)
	_, _, taken := w.history().Get(a.key)
	o, err := w.writer(s).Create(context.Background(), value)
	w.judgeResult(s, a, o, err, engine.ErrExists, taken)
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
	o, err := w.writer(s).Delete(context.Background(), key, engine.DeleteOptions{Preconditions: meant})
	w.trace.Result(w.newest(), err)
	if w.isUnanswered(s, asked[T]{kind: store.Deleted, key: key}, err) {
		return
	}
	w.judgeRefusal(s, err, engine.ErrPrecondition, meant.Revision != w.history().Shown(since))
	if err == nil {
		w.judgeWrite(asked[T]{kind: store.Deleted, key: key}, o)
	}
}

// race has two writers of one key: see [script.Race]. The first must be refused if it
// requires the revision that the second has replaced, and must otherwise update what the
// second wrote.
func (w *World[T]) race(s script.Step) {
	draw := rand.New(rand.NewPCG(s.Seed, 1))
	mine := w.cfg.Draw(draw)
	a := w.changeTo(mine, 0)
	if a.leaves != 0 {
		return // an equal value writes nothing, so that no other write is in its way
	}
	_, since, known := w.history().Get(a.key)
	meant := w.history().Shown(since)
	if s.N == 2 && known {
		w.raceByReplace(s, draw, a, mine, meant)
		return
	}
	opts := engine.UpdateOptions{CreateIfMissing: true}
	if s.N == 1 && known {
		opts.Preconditions.Revision = meant
	}
	w.raceByUpdate(s, draw, a, mine, opts)
}

// raceByReplace replaces the state at the revision meant, after another write.
func (w *World[T]) raceByReplace(s script.Step, draw *rand.Rand, a asked[T], mine T, meant store.Revision) {
	overtaken := w.writeAsRival(draw, a.key)
	o, err := w.writer(s).Replace(context.Background(), mine, meant)
	w.judgeResult(s, a, o, err, engine.ErrConflict, overtaken)
}

// raceByUpdate updates the object, and another write comes while the function of the update runs first.
func (w *World[T]) raceByUpdate(s script.Step, draw *rand.Rand, a asked[T], mine T, opts engine.UpdateOptions) {
	calls, overtaken, stale := 0, false, false
	o, err := w.writer(s).Update(context.Background(), a.key, func(current T) (T, error) {
		if calls++; calls == 1 {
			overtaken = w.writeAsRival(draw, a.key)
			stale = overtaken
			return mine, nil
		}
		newest, _, _ := w.history().Get(a.key)
		stale = !w.storage.Equal(current, newest)
		return mine, nil
	}, opts)
	w.judgeResult(s, a, o, err, engine.ErrConflict, overtaken && opts.Preconditions.Revision != 0)
	if err == nil && stale {
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "an update of %q was made from what another write had replaced", a.key))
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
	before, a := w.newest(), w.changeTo(value, 0)
	o, err := w.writer(script.Step{Uncached: true}).Put(context.Background(), value)
	w.judgeResult(script.Step{Do: script.Race}, a, o, err, nil, false)
	return w.newest() > before && a.key == key
}

// judgeResult judges the result of a write, which was to make the change a and must fail for reason
// exactly if due is set.
func (w *World[T]) judgeResult(s script.Step, a asked[T], o *engine.Object[T], err, reason error, due bool) {
	w.trace.Result(revisionOf(o), err)
	if w.isUnanswered(s, a, err) {
		return
	}
	if w.judgeRefusal(s, err, reason, due); err == nil {
		w.judgeWrite(a, o)
	}
}

// engineOfStep returns the engine through which a step writes or reads.
func (w *World[T]) engineOfStep(s script.Step) *engine.Engine[T] {
	if s.Uncached && w.uncached != nil {
		return w.uncached
	}
	return w.engine
}

// judgeRefusal fails the world unless err is reason where due is set, and nil where it is not, or storage
// could not be reached.
func (w *World[T]) judgeRefusal(s script.Step, err, reason error, due bool) {
	switch {
	case w.hasFailed(err):
	case due && !errors.Is(err, reason):
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "it should fail as %v, but: %v", reason, err))
	case !due && err != nil:
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
	}
}
