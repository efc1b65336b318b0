package backendtest_test

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
)

type (
	item    = backendtest.Item
	object  = store.Object
	event   = store.Event
	correct = *memory.Backend
	batch   = backend.Batch
	watcher = backend.Watcher
)

// wrapper is a correct backend with some of its methods replaced.
type wrapper struct {
	correct

	get       func(ctx context.Context, key string) (*object, error)
	put       func(ctx context.Context, draft, prev *object, opts backend.PutOptions) (*object, error)
	remove    func(ctx context.Context, prev *object) (*object, error)
	list      func(ctx context.Context, opts backend.ListOptions) (*backend.List, error)
	watch     func(ctx context.Context, opts backend.WatchOptions) (watcher, error)
	revision  func(ctx context.Context) (store.Revision, error)
	compact   func(ctx context.Context, rev store.Revision) error
	compacted func(ctx context.Context) (store.Revision, error)
	emit      func(ctx context.Context, draft *object) (*object, error)
	storeID   func(ctx context.Context) (string, error)
	close     func() error
	// sparse: a revision may have several events, by transact.
	sparse   bool
	transact func(put []backendtest.Value, remove []string) store.Revision
	// alone: it says that no other process writes.
	alone bool
	// identifies: it says that its lists tell the storage.
	identifies bool
}

// Traits are those of durable, shared storage: the correct backend stays open when the
// harness reopens it.
func (w *wrapper) Traits() backend.Traits {
	return backend.Traits{Contiguous: !w.sparse, KeepsHistory: true, Shared: !w.alone, Identifies: w.identifies}
}

func (w *wrapper) StoreID(ctx context.Context) (string, error) {
	if w.storeID != nil {
		return w.storeID(ctx)
	}
	return w.correct.StoreID(ctx)
}

func (w *wrapper) Close() error {
	if w.close != nil {
		return w.close()
	}
	return w.correct.Close()
}

func (w *wrapper) Get(ctx context.Context, key string) (*object, error) {
	if w.get != nil {
		return w.get(ctx, key)
	}
	return w.correct.Get(ctx, key)
}

func (w *wrapper) Put(ctx context.Context, draft, prev *object, opts backend.PutOptions) (*object, error) {
	if w.put != nil {
		return w.put(ctx, draft, prev, opts)
	}
	return w.correct.Put(ctx, draft, prev, opts)
}

func (w *wrapper) Remove(ctx context.Context, prev *object) (*object, error) {
	if w.remove != nil {
		return w.remove(ctx, prev)
	}
	return w.correct.Remove(ctx, prev)
}

func (w *wrapper) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if w.list != nil {
		return w.list(ctx, opts)
	}
	return w.correct.List(ctx, opts)
}

func (w *wrapper) Watch(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
	if w.watch != nil {
		return w.watch(ctx, opts)
	}
	return w.correct.Watch(ctx, opts)
}

func (w *wrapper) Revision(ctx context.Context) (store.Revision, error) {
	if w.revision != nil {
		return w.revision(ctx)
	}
	return w.correct.Revision(ctx)
}

func (w *wrapper) Compact(ctx context.Context, rev store.Revision) error {
	if w.compact != nil {
		return w.compact(ctx, rev)
	}
	return w.correct.Compact(ctx, rev)
}

func (w *wrapper) Compacted(ctx context.Context) (store.Revision, error) {
	if w.compacted != nil {
		return w.compacted(ctx)
	}
	return w.correct.Compacted(ctx)
}

func (w *wrapper) Emit(ctx context.Context, draft *object) (*object, error) {
	if w.emit != nil {
		return w.emit(ctx, draft)
	}
	return w.correct.Emit(ctx, draft)
}

// identified returns a backend whose lists and watches tell the storage, by tell: correct, if
// that returns the identity.
func identified(tell func(id string, opts backend.ListOptions) string, ofWatch func(id string) string) func(correct) *wrapper {
	return func(h correct) *wrapper {
		w := eachList(func(ctx context.Context, h correct, opts backend.ListOptions) (*backend.List, error) {
			id, _ := h.StoreID(ctx)
			l, err := h.List(ctx, opts)
			if err == nil {
				l.StoreID = tell(id, opts)
			}
			return l, err
		})(h)
		w.identifies = true
		w.watch = func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			beneath, err := h.Watch(ctx, opts)
			if err != nil {
				return nil, err
			}
			id, _ := h.StoreID(ctx)
			return &identifiedWatcher{beneath, ofWatch(id)}, nil
		}
		return w
	}
}

// identifiedWatcher is a correct watcher that knows its storage.
type identifiedWatcher struct {
	watcher
	id string
}

func (w *identifiedWatcher) StoreID(context.Context) (string, error) { return w.id, nil }

// watcherWrapper is a correct watcher with some of its methods replaced.
type watcherWrapper struct {
	watcher
	next     func(limit int) (batch, error)
	close    func()
	progress func(ctx context.Context) error
}

func (w *watcherWrapper) RequestProgress(ctx context.Context) error {
	if w.progress != nil {
		return w.progress(ctx)
	}
	return store.ErrUnsupported
}

func (w *watcherWrapper) Next(limit int) (batch, error) {
	if w.next != nil {
		return w.next(limit)
	}
	return w.watcher.Next(limit)
}

func (w *watcherWrapper) Close() {
	if w.close != nil {
		w.close()
		return
	}
	w.watcher.Close()
}

// eachWatch breaks every watch of a backend.
func eachWatch(wreck func(h correct, w watcher, opts backend.WatchOptions) *watcherWrapper) func(correct) *wrapper {
	return func(h correct) *wrapper {
		return &wrapper{correct: h, watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			w, err := h.Watch(ctx, opts)
			if err != nil {
				return nil, err
			}
			return wreck(h, w, opts), nil
		}}
	}
}

// eachBatch breaks every batch that has events.
func eachBatch(wreck func(b batch) batch) func(correct) *wrapper {
	return eachWatch(func(_ correct, w watcher, _ backend.WatchOptions) *watcherWrapper {
		return &watcherWrapper{watcher: w, next: func(limit int) (batch, error) {
			b, err := w.Next(limit)
			if err != nil || len(b.Events) == 0 {
				return b, err
			}
			return wreck(b), nil
		}}
	})
}

// eachEvent breaks every event of one type.
func eachEvent(t store.EventType, wreck func(ev event) event) func(correct) *wrapper {
	return eachBatch(func(b batch) batch {
		events := make([]event, 0, len(b.Events))
		for _, ev := range b.Events {
			if ev.Type == t {
				ev = wreck(ev)
			}
			events = append(events, ev)
		}
		b.Events = events
		return b
	})
}

// eachNotify breaks the notifications of every watch.
func eachNotify(wreck func(notify func()) func()) func(correct) *wrapper {
	return func(h correct) *wrapper {
		return &wrapper{correct: h, watch: func(ctx context.Context, opts backend.WatchOptions) (watcher, error) {
			if opts.Notify != nil {
				opts.Notify = wreck(opts.Notify)
			}
			return h.Watch(ctx, opts)
		}}
	}
}
