package explore

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func onStorage(wrap func(*storage[Thing], *once) backend.Backend) func(*once) seams[Thing] {
	return func(o *once) seams[Thing] {
		return seams[Thing]{storage: func(w *World[Thing]) backend.Backend { return wrap(w.storage, o) }}
	}
}

// dropBatch loses a batch and covers it up.
func dropBatch(s *storage[Thing], o *once) backend.Backend { return &dropsBatch{s, o} }

type dropsBatch struct {
	*storage[Thing]
	once *once
}

func (b *dropsBatch) Traits() backend.Traits { return backend.Traits{Blocks: b.traits.Blocks} }

func (b *dropsBatch) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.storage.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &droppingWatcher{w, b.once, opts.From}, nil
}

type droppingWatcher struct {
	backend.Watcher
	once    *once
	through store.Revision
}

func (w *droppingWatcher) Next(limit int) (backend.Batch, error) {
	batch, err := w.Watcher.Next(limit)
	if len(batch.Events) > 0 && w.once.now() {
		batch, err = w.Watcher.Next(limit)
	}
	if err == nil {
		batch.After, w.through = w.through, batch.Through
	}
	return batch, err
}

// stale says once that storage is where it was one write ago.
func stale(s *storage[Thing], o *once) backend.Backend { return &staleStorage{s, o} }

type staleStorage struct {
	*storage[Thing]
	once *once
}

func (b *staleStorage) Revision(ctx context.Context) (store.Revision, error) {
	rev, err := b.storage.Revision(ctx)
	if rev > judge.First && b.once.now() {
		rev--
	}
	return rev, err
}

// skipDelete lists an object that is gone since it was listed before.
func skipDelete(s *storage[Thing], o *once) backend.Backend {
	return &skipsDelete{s, o, map[string]*store.Object{}}
}

type skipsDelete struct {
	*storage[Thing]
	once *once
	seen map[string]*store.Object
}

func (b *skipsDelete) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	l, err := b.storage.List(ctx, opts)
	if err != nil || !fromCache(opts) {
		return l, err
	}
	have := map[string]bool{}
	for _, o := range l.Items {
		have[o.Key], b.seen[o.Key] = true, o
	}
	for _, key := range slices.Sorted(maps.Keys(b.seen)) {
		if !have[key] && b.seen[key].Revision <= l.Revision && b.once.now() {
			l.Items = append(l.Items, b.seen[key])
			slices.SortFunc(l.Items, func(a, b *store.Object) int { return strings.Compare(a.Key, b.Key) })
			break
		}
	}
	return l, nil
}

// fromCache reports whether it is the engine's cache that lists: others are
// readers.
func fromCache(opts backend.ListOptions) bool { return opts.Limit == reflector.DefaultPageSize }

// refuseWrite cannot be reached by one write, for no reason.
func refuseWrite(s *storage[Thing], o *once) backend.Backend { return &refusesWrite{s, o} }

type refusesWrite struct {
	*storage[Thing]
	once *once
}

func (b *refusesWrite) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if b.once.now() {
		return nil, errOutage
	}
	return b.storage.Put(ctx, draft, prev, opts)
}

// createAnyway writes over what is there when it should create.
func createAnyway(s *storage[Thing], o *once) backend.Backend { return &createsAnyway{s, o} }

type createsAnyway struct {
	*storage[Thing]
	once *once
}

func (b *createsAnyway) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	if current, err := b.Get(ctx, draft.Key); err == nil && prev == nil && b.once.now() {
		prev = current
	}
	return b.storage.Put(ctx, draft, prev, opts)
}

// showLess lists one object less when it is asked for a past state, as the
// engine does to compare.
func showLess(s *storage[Thing], o *once) backend.Backend { return &showsLess{s, o} }

type showsLess struct {
	*storage[Thing]
	once *once
}

func (b *showsLess) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	l, err := b.storage.List(ctx, opts)
	if err == nil && fromCache(opts) && opts.Revision > 0 && len(l.Items) > 0 && b.once.now() {
		l.Items = l.Items[1:]
	}
	return l, err
}

// listNoMore fails the lists of the cache from some time on.
func listNoMore(s *storage[Thing], o *once) backend.Backend { return &listsNoMore{s, o} }

type listsNoMore struct {
	*storage[Thing]
	once *once
}

func (b *listsNoMore) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if fromCache(opts) && b.once.since() {
		return nil, errOutage
	}
	return b.storage.List(ctx, opts)
}

// neverRest says from some time on that there is more whenever it has been
// asked.
func neverRest(s *storage[Thing], o *once) backend.Backend { return &neverRests{s, o} }

type neverRests struct {
	*storage[Thing]
	once *once
}

func (b *neverRests) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.storage.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &restlessWatcher{w, b.once, opts.Notify}, nil
}

type restlessWatcher struct {
	backend.Watcher
	once *once
	tell func()
}

func (w *restlessWatcher) Next(limit int) (backend.Batch, error) {
	if w.once.since() {
		w.tell()
	}
	return w.Watcher.Next(limit)
}
