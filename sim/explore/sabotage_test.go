package explore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// sabotage is a fault in a seam, and the invariants by which it may be found.
type sabotage struct {
	name  string
	seams func() seams[Thing]
	by    []judge.Invariant
}

// sabotages are the ways in which a list-watch engine is known to go wrong, each
// applied to what passes between the engine and the world around it, as near to
// where it would happen as it does harm.
//
// A batch that storage drops or repeats in plain sight, a gap in the revisions,
// does none: the engine lists again. So the dropped one is dropped by a storage
// that covers it up, and the repeated one behind the engine.
var sabotages = []sabotage{
	{"drop one batch", onStorage(func(s *storage[Thing]) backend.Backend[Thing] { return &dropsBatch{storage: s} }),
		[]judge.Invariant{judge.Reliable, judge.Resumable, judge.Bookmarkable, judge.PrevValue, judge.ReadState}},
	{"deliver one twice", onDelivery(twice), []judge.Invariant{judge.Unique, judge.InitialState}},
	{"swap two", onDelivery(swap), []judge.Invariant{judge.Ordered, judge.InitialState, judge.Bookmarkable}},
	{"let a bookmark pass an event", onDelivery(passedByBookmark), []judge.Invariant{judge.Bookmarkable}},
	{"register one late", func() seams[Thing] { return seams[Thing]{ask: late} },
		[]judge.Invariant{judge.Reliable, judge.Bookmarkable, judge.Resumable, judge.Conserved, judge.InitialState}},
	{"lose a Terminated", func() seams[Thing] { return seams[Thing]{turn: unheard} },
		[]judge.Invariant{judge.Conserved, judge.NothingLeft}},
	{"serve a stale snapshot as Latest", onStorage(func(s *storage[Thing]) backend.Backend[Thing] { return &stale{storage: s} }),
		[]judge.Invariant{judge.ReadLatest, judge.Resumable, judge.InitialState}},
	{"forget a stalled watcher", func() seams[Thing] { return seams[Thing]{turn: forgotten} },
		[]judge.Invariant{judge.Conserved, judge.InitialState, judge.NothingLeft}},
	{"skip a delete in a diff", onStorage(func(s *storage[Thing]) backend.Backend[Thing] {
		return &skipsDelete{storage: s, seen: map[string]*store.Object[Thing]{}}
	}), []judge.Invariant{judge.Reliable, judge.Bookmarkable, judge.InitialState, judge.Conserved, judge.ReadState, judge.ReadLatest, judge.ReadCached, judge.ReadNotOlder, judge.ReadExact}},
	{"break a resume by one", func() seams[Thing] { return seams[Thing]{start: oneFurther} },
		[]judge.Invariant{judge.Resumable, judge.Reliable}},
}

// maxSabotaged is within how many seeds each must be found.
const maxSabotaged = 200

func TestEverySabotageIsFound(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			seed, f := find(t, s)
			require.NotNil(t, f, "not found within %d seeds", maxSabotaged)
			t.Logf("seed %d: %v", seed, f)
			require.Contains(t, s.by, f.Invariant, f)
		})
	}
}

// find returns the first seed that finds the sabotage.
func find(t *testing.T, s sabotage) (uint64, *judge.Failure) {
	cfg, err := Things().withDefaults()
	require.NoError(t, err)
	for seed := uint64(1); seed <= maxSabotaged; seed++ {
		o := simulate(&cfg, Draw(seed, len(cfg.Selections), cfg.Steps), s.seams(), nil)
		require.NoError(t, o.broken)
		if o.failure != nil {
			return seed, o.failure
		}
	}
	return 0, nil
}

// A finding is no use if it cannot be had again, short.
func TestASabotageIsShrunkAndReplayed(t *testing.T) {
	s := sabotages[slices.IndexFunc(sabotages, func(s sabotage) bool { return s.name == "deliver one twice" })]
	explore := func(from uint64, n int) *Finding {
		r, err := run(t.Context(), seeds(Things(), from, n), s.seams)
		require.NoError(t, err)
		require.NotNil(t, r.Finding)
		return r.Finding
	}
	first := explore(1, maxSabotaged)
	require.Less(t, len(first.Steps), 15, first.Steps)
	require.Less(t, len(first.Steps), first.Drawn)
	require.Contains(t, first.Trace[len(first.Trace)-1], "BROKEN: "+string(first.Invariant))
	require.Equal(t, first, explore(first.Seed, 1), "its seed alone finds the same")
}

func onStorage(wrap func(*storage[Thing]) backend.Backend[Thing]) func() seams[Thing] {
	return func() seams[Thing] {
		return seams[Thing]{storage: func(w *World[Thing]) backend.Backend[Thing] { return wrap(w.storage) }}
	}
}

func onDelivery(deliver func(*watch[Thing], engine.Event[Thing]) []engine.Event[Thing]) func() seams[Thing] {
	return func() seams[Thing] { return seams[Thing]{deliver: deliver} }
}

// twice repeats the third event of each watch.
func twice(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	if len(r.Events) == 2 && ev.Type != engine.Bookmark {
		return []engine.Event[Thing]{ev, ev}
	}
	return []engine.Event[Thing]{ev}
}

// swap exchanges the second event of each watch with the next.
func swap(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	if len(r.Events) == 1 && !r.spoil.done {
		r.spoil.done, r.spoil.held = true, []engine.Event[Thing]{ev}
		return nil
	}
	events := append([]engine.Event[Thing]{ev}, r.spoil.held...)
	r.spoil.held = nil
	return events
}

// passedByBookmark has a bookmark go before the event that it is of.
func passedByBookmark(r *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	if ev.Marks != 0 || ev.Type == engine.Bookmark || !r.Options.Bookmarks {
		return []engine.Event[Thing]{ev}
	}
	return []engine.Event[Thing]{{Type: engine.Bookmark, Revision: ev.Revision}, ev}
}

// late: the consumer is told that its watch has begun, but the engine hears of it
// only after another write.
func late(w *World[Thing], r *watch[Thing], call func()) (believe func()) {
	if r.Options.From > 0 || r.Options.Last > 0 {
		call()
		return func() {}
	}
	told := w.newest()
	w.write(Step{Do: Write, Seed: uint64(told)})
	w.sched.settle()
	call()
	return func() { r.Earliest, r.Latest = min(r.Earliest, told), min(r.Latest, told) }
}

// unheard: a watch that its consumer stops never has the turn in which its actor
// would end, so that its supervisor never hears of it.
func unheard(r *watch[Thing]) bool { return errors.Is(r.handle.Err(), engine.ErrStopped) }

// forgotten: a watch that was called stalled never has a turn again.
func forgotten(r *watch[Thing]) bool {
	r.spoil.done = r.spoil.done || r.handle.Stalled()
	return r.spoil.done
}

// oneFurther has every watch from a revision start one later.
func oneFurther(_ *World[Thing], opts engine.WatchOptions) engine.WatchOptions {
	if opts.From > 0 && !opts.InitialState {
		opts.From++
	}
	return opts
}

// dropsBatch loses every fifth batch and covers it up.
type dropsBatch struct {
	*storage[Thing]
	batches int
}

func (b *dropsBatch) Traits() backend.Traits { return backend.Traits{Blocks: b.traits.Blocks} }

func (b *dropsBatch) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher[Thing], error) {
	w, err := b.storage.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &droppingWatcher{w, b, opts.From}, nil
}

type droppingWatcher struct {
	backend.Watcher[Thing]
	storage *dropsBatch
	through store.Revision
}

func (w *droppingWatcher) Next(limit int) (backend.Batch[Thing], error) {
	batch, err := w.Watcher.Next(limit)
	if len(batch.Events) > 0 {
		if w.storage.batches++; w.storage.batches%5 == 0 {
			batch, err = w.Watcher.Next(limit)
		}
	}
	if err == nil {
		batch.After, w.through = w.through, batch.Through
	}
	return batch, err
}

// stale says that storage is where it was one write ago.
type stale struct{ *storage[Thing] }

func (b *stale) Revision(ctx context.Context) (store.Revision, error) {
	rev, err := b.storage.Revision(ctx)
	return max(rev, judge.First+1) - 1, err
}

// skipsDelete lists the first object that is gone since it was listed before.
type skipsDelete struct {
	*storage[Thing]
	seen map[string]*store.Object[Thing]
}

func (b *skipsDelete) List(ctx context.Context, opts backend.ListOptions) (*backend.List[Thing], error) {
	l, err := b.storage.List(ctx, opts)
	if err != nil || opts.Limit != reflector.DefaultPageSize { // others are readers
		return l, err
	}
	have := map[string]*store.Object[Thing]{}
	for _, o := range l.Items {
		have[o.Key], b.seen[o.Key] = o, o
	}
	for _, key := range slices.Sorted(maps.Keys(b.seen)) {
		if have[key] == nil && b.seen[key].Revision <= l.Revision {
			l.Items = append(l.Items, b.seen[key])
			slices.SortFunc(l.Items, func(a, b *store.Object[Thing]) int { return strings.Compare(a.Key, b.Key) })
			break
		}
	}
	return l, nil
}
