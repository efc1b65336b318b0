package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

var readInvariants = [script.ReadModes]judge.Invariant{judge.ReadLatest, judge.ReadCached, judge.ReadExact, judge.ReadNotOlder}

// readErrors are, by mode, the errors with which the contract allows a read to fail: the cache
// is not ready, the call cannot wait any longer, the revision does not come in time, the
// history of the revision is gone, or storage, which the read needs, cannot be reached.
var readErrors = [script.ReadModes][]error{
	script.ReadLatest:   {engine.ErrNotReady, engine.ErrIdle, storage.ErrOutage},
	script.ReadCached:   {engine.ErrNotReady, engine.ErrIdle},
	script.ReadExact:    {engine.ErrNotReady, engine.ErrIdle, engine.ErrFuture, engine.ErrExpired, storage.ErrOutage},
	script.ReadNotOlder: {engine.ErrNotReady, engine.ErrIdle, engine.ErrFuture},
}

// readErrorsDirect are those of reads through the engine without a cache.
var readErrorsDirect = [script.ReadModes][]error{script.ReadExact: {engine.ErrExpired}}

// read is a read that is about to be made, or has been made.
type read[T any] struct {
	judge.Read[T]
	// by is the engine that reads.
	by *engine.Engine[T]
	// reached is the revision of the engine's cache before the read, and turns how many turns
	// there had been.
	reached store.Revision
	turns   uint64
	// since is the index of the oldest history that it may show.
	since int
}

// readBy returns a read by an engine, before it is made. Its bounds and its invariant are r's.
func (w *World[T]) readBy(by *engine.Engine[T], r judge.Read[T]) read[T] {
	since := len(w.former)
	if by == w.engine {
		since = w.oldestShown()
	}
	return read[T]{Read: r, by: by, reached: w.engine.Revision(), turns: w.trace.Number(execution.Turns), since: since}
}

// newRead returns the options of a read that is about to be made, and the bounds of the
// state that it may show. After the read, completeRead completes the bounds by the newest revision,
// since there may be writes meanwhile.
func (w *World[T]) newRead(by *engine.Engine[T], mode script.ReadMode, seed uint64) (engine.Read, read[T]) {
	rev := w.history().Shown(1 + store.Revision(seed%uint64(w.newest())))
	r := w.readBy(by, judge.Read[T]{Name: string(readInvariants[mode]), Mode: readInvariants[mode], Oldest: rev, Newest: rev})
	if mode == script.ReadExact {
		return engine.Exactly(rev), r
	}
	asked := engine.Latest()
	r.Oldest = w.newest()
	switch mode {
	case script.ReadCached:
		asked = engine.Cached()
	case script.ReadNotOlder:
		asked = engine.NotOlderThan(rev)
	}
	switch {
	case by != w.engine: // without a cache, the engine has only the newest state
	case mode == script.ReadCached:
		r.Oldest = w.engine.Revision()
	case mode == script.ReadNotOlder:
		r.Oldest = rev
	}
	return asked, r
}

// allowedErrors returns the errors with which a read through an engine may fail.
func (w *World[T]) allowedErrors(by *engine.Engine[T], mode script.ReadMode) []error {
	if by != w.engine {
		return readErrorsDirect[mode]
	}
	return readErrors[mode]
}

// completeRead sets the newest revision that a read may show, after the read has returned.
func (w *World[T]) completeRead(mode script.ReadMode, r read[T]) judge.Read[T] {
	if mode != script.ReadExact {
		r.Newest = w.newest()
	}
	return r.Read
}

// read performs a step that reads.
func (w *World[T]) read(s script.Step) {
	mode := script.ReadMode(s.N) % script.ReadModes
	selection := int(s.Seed % uint64(len(w.cfg.Selections)))
	sel := w.cfg.Selections[selection]
	switch s.Do {
	case script.Get:
		w.wait(s, s.For, func(ctx context.Context) { w.get(ctx, w.engineOfStep(s), mode, s.Seed) })
	case script.List:
		w.wait(s, s.For, func(ctx context.Context) {
			w.remember(selection, s.Uncached, w.listBy(ctx, w.engineOfStep(s), mode, s.Seed, w.fromKey(sel, s.Seed)))
		})
	case script.WaitFor:
		w.wait(s, s.For, func(ctx context.Context) { w.waitFor(ctx, s.Seed) })
	case script.Pages:
		w.pages(s, sel)
	case script.NextPage:
		w.nextPage(s, sel)
	case script.Follow:
		w.follow(s)
	}
}

// fromKey returns the selection, for every third seed starting at one of the keys that ever had an
// object.
func (w *World[T]) fromKey(sel Selection[T], seed uint64) Selection[T] {
	draw, keys := rand.New(rand.NewPCG(seed, 9)), w.history().Keys()
	if len(keys) == 0 || sel.Key != "" || draw.IntN(3) != 0 {
		return sel
	}
	selects, key := sel.selects(), w.cfg.Engine.Key
	sel.start = keys[draw.IntN(len(keys))]
	sel.Selects = func(value T) bool { return key(value) >= sel.start && selects(value) }
	return sel
}

// waitFor waits until the engine has reached a revision. Two of the drawn ones are in the future.
func (w *World[T]) waitFor(ctx context.Context, seed uint64) {
	rev := w.history().Shown(1 + store.Revision(seed%uint64(w.newest()+2)))
	r := w.readBy(w.engine, judge.Read[T]{Name: "wait", Mode: judge.ReadNotOlder, Oldest: rev, Newest: rev})
	err := w.refuse(r.Name)
	if err == nil {
		err = w.engine.WaitForRevision(ctx, rev)
	}
	w.trace.Result(rev, err)
	switch at := w.engine.Revision(); {
	case err != nil:
		w.judgeReadError(ctx, r, err, readErrors[script.ReadNotOlder])
	case at < rev && r.since == len(w.former):
		w.fail(judge.Failed(r.Mode, r.Name, "the engine is at %d, not at %d", at, rev))
	}
}

// get reads one of the keys that ever had an object, and judges the result.
func (w *World[T]) get(ctx context.Context, by *engine.Engine[T], mode script.ReadMode, seed uint64) {
	keys := w.history().Keys()
	if len(keys) == 0 {
		return
	}
	key := keys[seed%uint64(len(keys))]
	read, r := w.newRead(by, mode, seed)
	if mode == script.ReadLatest {
		w.mustShowStorage(&r)
	}
	var o *engine.Object[T]
	err := w.refuse(r.Name)
	if err == nil {
		o, err = by.Get(ctx, key, engine.GetOptions{Read: read})
	}
	w.trace.Result(revisionOf(o), err)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		w.judgeReadError(ctx, r, err, w.allowedErrors(by, mode))
		return
	}
	w.fail(w.judgeShown(w.histories(r.since), mode, r, func(h *judge.History[T], bounds judge.Read[T]) error {
		return h.JudgeGet(bounds, key, w.historyObject(o))
	}))
}

// listBy lists a selection through an engine and judges the result. It returns the list, nil
// if it failed.
func (w *World[T]) listBy(ctx context.Context, by *engine.Engine[T], mode script.ReadMode, seed uint64, sel Selection[T]) *engine.List[T] {
	read, r := w.newRead(by, mode, seed)
	if mode == script.ReadLatest {
		w.noteBehind(&r)
	}
	l, err := w.list(ctx, r, sel.list(read))
	if err != nil {
		w.trace.Result(0, err)
		w.judgeReadError(ctx, r, err, w.allowedErrors(by, mode))
		return nil
	}
	w.trace.Listed(l.Revision, len(l.Items))
	w.judgeList(l, mode, r, sel)
	return l
}

// judgeList judges a list by the history of which it says it is.
func (w *World[T]) judgeList(l *engine.List[T], mode script.ReadMode, r read[T], sel Selection[T]) {
	may, objects := w.histories(r.since), w.historyObjects(l.Items)
	if of := w.identities[l.Timeline.Store()]; of != nil {
		if !slices.Contains(may, of) {
			w.fail(judge.Failed(r.Mode, r.Name, "it is of revision %d of a history that storage no longer has", l.Revision))
			return
		}
		may = []*judge.History[T]{of}
	}
	w.fail(w.judgeShown(may, mode, r, func(h *judge.History[T], bounds judge.Read[T]) error {
		return h.JudgeList(bounds, sel.selects(), l.Revision, objects)
	}))
}

// list makes a read that lists.
func (w *World[T]) list(ctx context.Context, r read[T], opts engine.ListOptions) (*engine.List[T], error) {
	name := r.Name
	if opts.Continue != "" {
		name += ", continued"
	}
	if err := w.refuse(name); err != nil {
		return nil, err
	}
	if w.seams.list != nil {
		opts = w.seams.list(w, opts)
	}
	return r.by.List(ctx, opts)
}

// judgeReadError fails the world if a read failed without a reason: it may fail with one of
// the allowed errors, because its context has ended, because the engine is being closed, or because
// storage has failed a call of it. At rest the allowed errors do not count.
func (w *World[T]) judgeReadError(ctx context.Context, r read[T], err error, allowed []error) {
	switch {
	case ctx.Err() != nil && errors.Is(err, execution.ErrCanceled):
	case w.closing && errors.Is(err, engine.ErrEngineClosed), w.hasFailed(err):
	case w.resting || !slices.ContainsFunc(allowed, func(reason error) bool { return errors.Is(err, reason) }):
		w.fail(judge.Failed(judge.Refusals, r.Name, "%v", err))
	case errors.Is(err, engine.ErrIdle):
		w.judgeIdle(r.Name)
	case errors.Is(err, storage.ErrOutage) && !errors.Is(err, engine.ErrNotReady) && w.storage.FailedLists == w.failedLists:
		w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but storage has failed no list", err))
	case errors.Is(err, engine.ErrExpired) && r.Newest >= w.storage.Floor():
		w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but storage has the revisions from %d on", err, w.storage.Floor()))
	case errors.Is(err, engine.ErrFuture) && r.Oldest <= r.reached && r.since == len(w.former):
		w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the engine was at %d", err, r.reached))
	case errors.Is(err, engine.ErrNotReady) && w.wasReady(r.turns):
		w.fail(judge.Failed(judge.Refusals, r.Name, "%v, but the engine is ready", err))
	}
}

// wasReady reports whether the engine was certainly ready during a call, before which there had been so
// many turns.
func (w *World[T]) wasReady(turns uint64) bool {
	return turns == w.trace.Number(execution.Turns) && w.engine.Stats().Ready
}

// judgeIdle fails the world if a call has returned [engine.ErrIdle] although there are
// turns that it may wait for. It judges no call within a handler, whose patience is that of
// the step's call.
func (w *World[T]) judgeIdle(name string) {
	if w.sched.MayWait() {
		w.fail(judge.Failed(judge.Refusals, name, "idle with turns left"))
	}
}
