package engine

import (
	"context"

	"k8s.io/utils/dump"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// detectMutations puts a detector between the engine and its backend if the
// configuration requests it, and returns a function that checks everything again. All
// objects pass through there, so nothing else in the engine is involved.
func (e *core) detectMutations() (audit func()) {
	if !e.cfg.detectMutations {
		return func() {}
	}
	d := newDetector(e.schema, e.cfg.onError)
	detecting := &detectingBackend{e.storage.Backend(), d}
	var b backend.Backend = detecting
	if emitter, ok := detecting.Backend.(backend.Emitter); ok {
		b = &detectingEmitter{detecting, emitter}
	}
	e.storage = backend.NewStorage(b, *e.schema)
	return d.audit
}

// detectingBackend shows a detector every object that goes through it.
//
//	writes ──▶ ┌──────────────────┐ ──▶
//	reads  ◀── │ detectingBackend │ ◀── backend
//	events ◀── └───────┬──────────┘ ◀──
//	                   ▼ objects
//	                detector ──MutationError──▶ Config.OnError
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

// List shows the objects of pages of the newest state.
func (b *detectingBackend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	opts.State = false // the detector needs each object
	page, err := b.Backend.List(ctx, opts)
	if page == nil {
		return nil, err
	}
	b.detector.locked(func() {
		for _, o := range page.Items {
			b.detector.current(o)
		}
	})
	return page, err
}

// Watch shows the events.
func (b *detectingBackend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	if err != nil || w == nil {
		return nil, err
	}
	return &detectingWatcher{w, b.detector}, nil
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
		b.detector.wrote(o, given, b.detector.emitted)
	}
	return o, err
}

// givenValue is a value as the caller of a write gave it.
type givenValue struct {
	// object has the value. It is the draft itself, unless storage puts a revision
	// into that.
	object *store.Object
	before string
}

// given prints the value of a draft before it is written.
func (d *detector) given(draft *store.Object) givenValue {
	o := draft
	if d.schema.SetRevision != nil {
		o = d.schema.Clone(draft)
	}
	return givenValue{o, d.printValue(o)}
}

// printValue returns the deep print of an object's value.
func (d *detector) printValue(o *store.Object) string { return dump.ForHash(d.valueOf(o)) }

// wrote tracks o by how, and reports a value that has changed since before the write.
func (d *detector) wrote(o *store.Object, given givenValue, how func(*store.Object)) {
	d.locked(func() {
		how(o)
		t := d.known[o]
		if now := d.printValue(given.object); now != given.before && t != nil && !t.reported {
			t.reported = true
			d.found = append(d.found, &MutationError{o.Key, o.Revision, given.before, now})
		}
	})
}
