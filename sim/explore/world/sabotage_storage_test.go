package world

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// onStorage applies a rule between the engine and storage, of which the history has no
// record.
func onStorage(rule func(*World[Thing], *once) faulty.Rule) func(*once) seams[Thing] {
	return over(faulty.Options{ShareState: true}, rule)
}

func over(opts faulty.Options, rule func(*World[Thing], *once) faulty.Rule) func(*once) seams[Thing] {
	return func(o *once) seams[Thing] {
		return seams[Thing]{storage: func(w *World[Thing]) backend.Backend {
			b := faulty.New(w.storage, opts)
			b.Add(rule(w, o))
			return b
		}}
	}
}

// keepStorageID makes storage keep its identity when it goes back.
func keepStorageID(*once) seams[Thing] {
	return seams[Thing]{storage: func(w *World[Thing]) backend.Backend {
		return firstStorage{faulty.New(w.storage, faulty.Options{ShareState: true})}
	}}
}

type firstStorage struct{ *faulty.Backend }

func (firstStorage) StoreID(context.Context) (string, error) { return "the first", nil }

// renameStorage gives storage another identity once when its watches break, as if it were another one.
func renameStorage(o *once) seams[Thing] {
	return seams[Thing]{storage: func(w *World[Thing]) backend.Backend {
		return renamedStorage{faulty.New(w.storage, faulty.Options{ShareState: true}), w, o.left}
	}}
}

// renamedStorage has another identity after that many breaks.
type renamedStorage struct {
	*faulty.Backend
	world  *World[Thing]
	breaks int
}

func (s renamedStorage) StoreID(ctx context.Context) (string, error) {
	id, err := backend.StoreID(ctx, s.Backend)
	if len(s.world.storage.Breaks) > s.breaks {
		id += " renamed"
	}
	return id, err
}

// keepSourceID makes the engine's Source keep its identity when storage goes back, so that an
// informer and an object cache do not learn of that.
func keepSourceID(*once) seams[Thing] {
	return seams[Thing]{source: func(from backend.ListerWatcher) backend.ListerWatcher { return firstSource{from} }}
}

type firstSource struct{ backend.ListerWatcher }

func (firstSource) StoreID(context.Context) (string, error) { return "the first", nil }

func (s firstSource) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	page, err := s.ListerWatcher.List(ctx, opts)
	if err == nil {
		page.StoreID = "the first"
	}
	return page, err
}

func (s firstSource) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	watch, err := s.ListerWatcher.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return firstWatch{watch}, nil
}

type firstWatch struct{ backend.Watcher }

func (firstWatch) StoreID(context.Context) (string, error) { return "the first", nil }

// one returns the operation as the list of a rule.
func one(op faulty.Op) []faulty.Op { return []faulty.Op{op} }

// dropBatch loses a batch and hides that: the next one has its After. A gap between
// revisions shows nothing, since the storage is declared sparse.
var dropBatch = over(faulty.Options{Sparse: true, ShareState: true}, func(_ *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpNext), Do: func(_ context.Context, c *faulty.Call, proceed func()) {
		if proceed(); len(c.Batch.Events) > 0 && o.now() {
			proceed()
		}
		c.Batch.After = c.Position
	}}
})

// returnOldRevision returns the revision of storage before the last write, once.
func returnOldRevision(_ *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpRevision), Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if c.Revision > judge.First && o.now() {
			c.Revision--
		}
	})}
}

// skipDelete lists an object that was deleted after an earlier list.
func skipDelete(_ *World[Thing], o *once) faulty.Rule {
	seen := map[string]*store.Object{}
	return faulty.Rule{Ops: one(faulty.OpList), When: fromCache, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if c.Err != nil || c.Page.State != nil {
			return
		}
		have := map[string]bool{}
		for _, o := range c.Page.Items {
			have[o.Key], seen[o.Key] = true, o
		}
		for _, key := range slices.Sorted(maps.Keys(seen)) {
			if !have[key] && seen[key].Revision <= c.Page.Revision && o.now() {
				c.Page.Items = append(c.Page.Items, seen[key])
				slices.SortFunc(c.Page.Items, func(a, b *store.Object) int { return strings.Compare(a.Key, b.Key) })
				return
			}
		}
	})}
}

// fromCache reports whether the list is one of the engine's cache, rather than a read.
func fromCache(c *faulty.Call) bool { return c.ListOptions.Limit == reflector.DefaultPageSize }

// refuseWrite fails one write without a reason.
func refuseWrite(_ *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), When: func(*faulty.Call) bool { return o.now() }, Do: faulty.Fail(storage.ErrOutage)}
}

// acknowledgeFailure acknowledges writes of objects that storage has refused, with what was to be stored.
func acknowledgeFailure(*World[Thing], *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if errors.Is(c.Err, storage.ErrOutage) {
			c.Object, c.Err = c.Draft, nil
		}
	})}
}

// forgetOutage returns the first revision when that of storage cannot be asked for.
func forgetOutage(*World[Thing], *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpRevision), Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if errors.Is(c.Err, storage.ErrOutage) {
			c.Revision, c.Err = judge.First, nil
		}
	})}
}

// keepHistory acknowledges a compaction without making it.
func keepHistory(_ *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpCompact), Do: func(_ context.Context, _ *faulty.Call, proceed func()) {
		if !o.now() {
			proceed()
		}
	}}
}

// loseWrite acknowledges a write of an existing object, with that object, without storing it.
func loseWrite(w *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: func(ctx context.Context, c *faulty.Call, proceed func()) {
		current, err := w.storage.Unwrap().Get(ctx, c.Key)
		if err != nil || c.Prev == nil || c.Prev.Revision != current.Revision || !o.now() {
			proceed()
			return
		}
		c.Object = c.Prev
	}}
}

// loseUnnoticed acknowledges a write of an existing object, with that object, without storing it, while the cache has
// yet to notice that storage has gone back.
func loseUnnoticed(w *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: func(_ context.Context, c *faulty.Call, proceed func()) {
		if !w.unnoticed() || c.Prev == nil || !o.now() {
			proceed()
			return
		}
		c.Object = c.Prev
	}}
}

// storePrevious stores the value that the object has in place of a new one.
func storePrevious(w *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: faulty.Before(func(_ context.Context, c *faulty.Call) {
		if c.Prev != nil && o.now() {
			c.Draft = w.storage.Schema.Clone(c.Prev)
		}
	})}
}

// removeOther deletes the first object in place of another one.
func removeOther(w *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpRemove), Do: faulty.Before(func(ctx context.Context, c *faulty.Call) {
		page, err := w.storage.Unwrap().List(ctx, backend.ListOptions{Limit: 1})
		if err == nil && page.Items[0].Key != c.Key && o.now() {
			c.Prev = page.Items[0]
		}
	})}
}

// storeWithoutTTL makes an object permanent that was written with a TTL.
func storeWithoutTTL(_ *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: faulty.Before(func(_ context.Context, c *faulty.Call) {
		if c.PutOptions.TTL > 0 && o.now() {
			c.PutOptions.TTL = 0
		}
	})}
}

// forgetExpiry makes an object permanent that is written without a TTL.
func forgetExpiry(*World[Thing], *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: faulty.Before(func(_ context.Context, c *faulty.Call) {
		c.PutOptions.KeepExpiry = false
	})}
}

// createAnyway overwrites an existing object instead of refusing to create it.
func createAnyway(w *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: faulty.Before(func(ctx context.Context, c *faulty.Call) {
		if current, err := w.storage.Get(ctx, c.Key); err == nil && c.Prev == nil && o.now() {
			c.Prev = current
		}
	})}
}

// putAnyway overwrites an object that has changed since it was read.
func putAnyway(w *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: faulty.Before(func(ctx context.Context, c *faulty.Call) {
		current, err := w.storage.Get(ctx, c.Key)
		if err == nil && c.Prev != nil && c.Prev.Revision != current.Revision && o.now() {
			c.Prev = current
		}
	})}
}

// omitFromDirectRead leaves an object out of one read without a cache.
func omitFromDirectRead(o *once) seams[Thing] {
	return seams[Thing]{uncached: func(b backend.Backend) backend.Backend {
		f := faulty.New(b, faulty.Options{})
		f.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpGet, faulty.OpList}, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
			switch {
			case c.Err != nil:
			case c.Op == faulty.OpGet && o.now():
				c.Object, c.Err = nil, store.ErrNotFound
			case c.Op == faulty.OpList && len(c.Page.Items) > 0 && o.now():
				page := *c.Page
				page.Items = page.Items[1:]
				c.Page = &page
			}
		})})
		return f
	}}
}

// refuseDirectWatch refuses one watch without a cache, as not ready.
func refuseDirectWatch(o *once) seams[Thing] {
	return seams[Thing]{uncached: func(b backend.Backend) backend.Backend {
		f := faulty.New(b, faulty.Options{})
		f.Add(faulty.Rule{Ops: one(faulty.OpWatch), When: func(*faulty.Call) bool { return o.now() }, Do: faulty.Fail(&engine.NotReadyError{})})
		return f
	}}
}

// remainOneMore says of a page without a cache that one more object comes after it than does.
func remainOneMore(o *once) seams[Thing] {
	return seams[Thing]{uncached: func(b backend.Backend) backend.Backend {
		f := faulty.New(b, faulty.Options{})
		f.Add(faulty.Rule{Ops: one(faulty.OpList), Do: faulty.After(func(_ context.Context, c *faulty.Call) {
			if c.Err == nil && c.Page.Continue != "" && o.now() {
				page := *c.Page
				page.Remaining++
				c.Page = &page
			}
		})})
		return f
	}}
}

// omitFromComparison leaves one object out of a list of a past state, which the engine requests for
// its comparisons.
func omitFromComparison(w *World[Thing], o *once) faulty.Rule {
	past := func(c *faulty.Call) bool {
		return fromCache(c) && c.ListOptions.Revision > 0 && w.engine.Stats().Generation > 0
	}
	return faulty.Rule{Ops: one(faulty.OpList), When: past, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if c.Err == nil && len(c.Page.Items) > 0 && o.now() {
			c.Page.Items = c.Page.Items[1:]
		}
	})}
}

// forgetHistory hides from the engine that storage keeps its history.
func forgetHistory(*once) seams[Thing] {
	return seams[Thing]{storage: func(w *World[Thing]) backend.Backend {
		return forgetfulStorage{faulty.New(w.storage, faulty.Options{ShareState: true})}
	}}
}

type forgetfulStorage struct{ *faulty.Backend }

func (s forgetfulStorage) Traits() backend.Traits {
	t := s.Backend.Traits()
	t.KeepsHistory = false
	return t
}

// omitFromPast leaves one object out of the past state with which the engine begins.
func omitFromPast(w *World[Thing], o *once) faulty.Rule {
	first := func(c *faulty.Call) bool {
		return fromCache(c) && c.ListOptions.Revision > 0 && w.engine.Stats().Generation == 0
	}
	return faulty.Rule{Ops: one(faulty.OpList), When: first, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if c.Err == nil && len(c.Page.Items) > 0 && o.now() {
			c.Page.Items = c.Page.Items[1:]
		}
	})}
}

// failAllLists fails the lists of the cache from some time on.
func failAllLists(_ *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{
		Ops: one(faulty.OpList), When: func(c *faulty.Call) bool { return fromCache(c) && o.since() },
		Do: faulty.Fail(storage.ErrOutage),
	}
}

// wakeForever wakes the engine's watch before every Next, from some time on, so that the
// engine always has to call Next again.
func wakeForever(w *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpNext), Do: faulty.Before(func(context.Context, *faulty.Call) {
		if o.since() {
			w.storage.Wake()
		}
	})}
}
