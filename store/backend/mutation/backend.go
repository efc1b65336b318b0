package mutation

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Detect returns a backend that shows a detector every object which goes through it, on the
// way to b and back. It emits if b does. Its user gets each change as an [*Error] by report,
// which must not block and may call the backend. Audit compares all objects that are still
// tracked: the newest of each key, and the last 1,024 that were superseded, deleted, or in a list
// of the past. Call it when nothing uses them any more.
func Detect(b backend.Backend, schema *store.Schema, report func(error)) (detecting backend.Backend, audit func()) {
	d := newDetector(schema, report)
	all := &detectingBackend{b, d}
	if emitter, ok := b.(backend.Emitter); ok {
		return &detectingEmitter{all, emitter}, d.audit
	}
	return all, d.audit
}

// detectingBackend shows a detector every object that goes through it.
type detectingBackend struct {
	backend.Backend
	detector *detector
}

// Unwrap returns the underlying backend.
func (b *detectingBackend) Unwrap() backend.Backend { return b.Backend }

// Put prints the value before the write, since from then on readers share it with the
// writer.
func (b *detectingBackend) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	given := b.detector.given(draft)
	o, err := b.Backend.Put(ctx, draft, prev, opts)
	if err == nil {
		b.detector.wrote(o, given, b.detector.current)
	}
	return o, err
}

// Remove records the deletion of the object.
func (b *detectingBackend) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	o, err := b.Backend.Remove(ctx, prev)
	b.detector.locked(func() {
		if err == nil {
			b.detector.gone(prev.Key, o.Revision)
		}
	})
	return o, err
}

// Get, and Revision, which comes before cached reads, compare one object each.
func (b *detectingBackend) Get(ctx context.Context, key string) (*store.Object, error) {
	o, err := b.Backend.Get(ctx, key)
	b.detector.locked(func() {
		if t := b.detector.known[o]; t != nil {
			b.detector.compare(t)
		}
	})
	return o, err
}

// Revision returns the backend's newest revision.
func (b *detectingBackend) Revision(ctx context.Context) (store.Revision, error) {
	b.detector.locked(func() {})
	return b.Backend.Revision(ctx)
}

// List shows the objects.
func (b *detectingBackend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	opts.State = false // the detector needs each object
	page, err := b.Backend.List(ctx, opts)
	if page == nil {
		return nil, err
	}
	b.detector.locked(func() { b.detector.listed(page.Items, page.Revision) })
	return page, err
}

// Watch shows the events.
func (b *detectingBackend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	if err != nil || w == nil {
		return nil, err
	}
	detecting := &detectingWatcher{w, b.detector}
	if id, knows := w.(backend.Identifier); knows {
		return &identifiedWatcher{detecting, id}, nil
	}
	return detecting, nil
}

// identifiedWatcher is a detectingWatcher over one that knows which storage it is of.
type identifiedWatcher struct {
	*detectingWatcher
	backend.Identifier
}

type detectingWatcher struct {
	backend.Watcher
	detector *detector
}

// Next shows the events to the detector first.
func (w *detectingWatcher) Next(limit int) (backend.Batch, error) {
	batch, err := w.Watcher.Next(limit)
	w.detector.locked(func() {
		for _, ev := range batch.Events {
			w.detector.event(ev)
		}
	})
	return batch, err
}

// RequestProgress passes the request on.
func (w *detectingWatcher) RequestProgress(ctx context.Context) error {
	return backend.RequestProgress(ctx, w.Watcher)
}

// detectingEmitter is a detectingBackend over one that can emit.
type detectingEmitter struct {
	*detectingBackend
	emitter backend.Emitter
}

// Emit does for emitted values what Put does for written ones.
func (b *detectingEmitter) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	given := b.detector.given(draft)
	o, err := b.emitter.Emit(ctx, draft)
	if err == nil {
		b.detector.wrote(o, given, b.detector.briefly)
	}
	return o, err
}
