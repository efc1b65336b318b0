package backendtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
)

// groups is storage in which a transaction has one revision, over storage in which it
// has many: it shows all changes of a transaction at the revision of the last.
//
//	beneath   put a@2   put b@3   remove c@4   put d@5
//	shown     put a@2  {put b      remove c}@4  put d@5
type groups struct {
	correct
	mu sync.RWMutex // held for writing while a transaction is written
	// shown is the revision of the last change of a transaction, by that of each change.
	shown map[store.Revision]store.Revision
}

// grouped returns a correct backend that has transactions.
func grouped(h correct) *wrapper { return newGroups(h, (*groups).next) }

// newGroups returns a backend whose watches use next.
func newGroups(h correct, next func(g *groups, w watcher, limit int) (batch, error)) *wrapper {
	g := &groups{correct: h, shown: map[store.Revision]store.Revision{}}
	return &wrapper{
		correct: h, sparse: true, transact: g.transact, get: g.get, put: g.put, remove: g.remove, list: g.list,
		watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			w, err := h.Watch(ctx, opts)
			if err != nil {
				return nil, err
			}
			return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
				g.mu.RLock()
				defer g.mu.RUnlock()
				return next(g, w, limit)
			}}, nil
		},
	}
}

// transact writes in the order of keys.
func (g *groups) transact(put []backendtest.Value, remove []string) store.Revision {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range remove {
		put = append(put, backendtest.Value{Key: key})
	}
	slices.SortFunc(put, func(a, b backendtest.Value) int { return strings.Compare(a.Key, b.Key) })
	var revisions []store.Revision
	for _, v := range put {
		revisions = append(revisions, g.write(v, slices.Contains(remove, v.Key)))
	}
	last := revisions[len(revisions)-1]
	for _, rev := range revisions {
		g.shown[rev] = last
	}
	return last
}

func (g *groups) write(v backendtest.Value, remove bool) store.Revision {
	ctx := context.Background()
	prev, _ := g.correct.Get(ctx, v.Key)
	var o *object
	var err error
	if remove {
		o, err = g.correct.Remove(ctx, prev)
	} else {
		o, err = g.correct.Put(ctx, backendtest.Draft(v), prev, backend.PutOptions{})
	}
	if err != nil {
		panic(err)
	}
	return o.Revision
}

// at returns the revision that is shown for one of the storage below.
func (g *groups) at(rev store.Revision) store.Revision {
	if last, ok := g.shown[rev]; ok {
		return last
	}
	return rev
}

// show returns the object as it is shown.
func (g *groups) show(o *object) *object {
	if o == nil || g.at(o.Revision) == o.Revision && g.at(o.Created) == o.Created {
		return o
	}
	o = schema.Clone(o)
	o.Revision, o.Created = g.at(o.Revision), g.at(o.Created)
	return o
}

// showBatch returns the batch as it is shown.
func (g *groups) showBatch(b batch) batch {
	b.After, b.Through = g.at(b.After), g.at(b.Through)
	b.Events = slices.Clone(b.Events)
	for i, ev := range b.Events {
		b.Events[i].Revision, b.Events[i].Object, b.Events[i].Prev = g.at(ev.Revision), g.show(ev.Object), g.show(ev.Prev)
	}
	return b
}

// next reads until the last revision is complete.
func (g *groups) next(w watcher, limit int) (batch, error) {
	b, err := w.Next(limit)
	for err == nil && g.at(b.Through) != b.Through {
		var rest batch
		rest, err = w.Next(1)
		b.Through, b.Events = rest.Through, append(slices.Clip(b.Events), rest.Events...)
	}
	return g.showBatch(b), err
}

func (g *groups) get(ctx context.Context, key string) (*object, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	o, err := g.correct.Get(ctx, key)
	return g.show(o), err
}

func (g *groups) list(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	opts.State = false
	l, err := g.correct.List(ctx, opts)
	if err == nil {
		for i, o := range l.Items {
			l.Items[i] = g.show(o)
		}
	}
	return l, err
}

func (g *groups) put(ctx context.Context, draft, prev *object, opts backend.PutOptions) (*object, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	o, err := g.correct.Put(ctx, draft, g.beneath(prev), opts)
	return g.show(o), g.showError(err)
}

func (g *groups) remove(ctx context.Context, prev *object) (*object, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	o, err := g.correct.Remove(ctx, g.beneath(prev))
	return g.show(o), g.showError(err)
}

// beneath returns the object below that is shown as prev, or prev if there is none.
func (g *groups) beneath(prev *object) *object {
	if prev == nil {
		return nil
	}
	if o, err := g.correct.Get(context.Background(), prev.Key); err == nil && g.at(o.Revision) == prev.Revision {
		return o
	}
	return prev
}

func (g *groups) showError(err error) error {
	if conflict := (*backend.ConflictError)(nil); errors.As(err, &conflict) {
		return &backend.ConflictError{Key: conflict.Key, Expected: conflict.Expected, Current: g.show(conflict.Current)}
	}
	return err
}
