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
	guarded := &guardedBackend{e.storage.Backend(), d}
	var b backend.Backend = guarded
	if emitter, ok := guarded.Backend.(backend.Emitter); ok {
		b = &guardedEmitter{guarded, emitter}
	}
	e.storage = backend.NewStorage(b, *e.schema)
	return d.audit
}

// guardedBackend shows a detector every object that goes through it.
//
//	writes ──▶ ┌────────────────┐ ──▶
//	reads  ◀── │ guardedBackend │ ◀── backend
//	events ◀── └──────┬─────────┘ ◀──
//	                  ▼ objects
//	               detector ──MutationError──▶ Config.OnError
type guardedBackend struct {
	backend.Backend
	detector *detector
}

// Unwrap returns the underlying backend.
func (g *guardedBackend) Unwrap() backend.Backend { return g.Backend }

// Put prints the value before the write, since from then on readers share it with the
// writer.
func (g *guardedBackend) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	given := g.detector.given(draft)
	o, err := g.Backend.Put(ctx, draft, prev, opts)
	if err == nil {
		g.detector.wrote(o, given, g.detector.current)
	}
	return o, err
}

// Remove records the deletion of the object.
func (g *guardedBackend) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	o, err := g.Backend.Remove(ctx, prev)
	g.detector.locked(func() {
		if err == nil {
			g.detector.gone(prev.Key, o.Revision)
		}
	})
	return o, err
}

// Get, and Revision, which comes before cached reads, compare one object each.
func (g *guardedBackend) Get(ctx context.Context, key string) (*store.Object, error) {
	o, err := g.Backend.Get(ctx, key)
	g.detector.locked(func() {
		if t := g.detector.known[o]; t != nil {
			g.detector.compare(t)
		}
	})
	return o, err
}

// Revision returns the backend's newest revision.
func (g *guardedBackend) Revision(ctx context.Context) (store.Revision, error) {
	g.detector.locked(func() {})
	return g.Backend.Revision(ctx)
}

// List shows the objects of pages of the newest state.
func (g *guardedBackend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	opts.State = false // the detector needs each object
	page, err := g.Backend.List(ctx, opts)
	if page == nil {
		return nil, err
	}
	g.detector.locked(func() {
		for _, o := range page.Items {
			g.detector.current(o)
		}
	})
	return page, err
}

// Watch shows the events.
func (g *guardedBackend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := g.Backend.Watch(ctx, opts)
	if err != nil || w == nil {
		return nil, err
	}
	return &guardedWatcher{w, g.detector}, nil
}

type guardedWatcher struct {
	backend.Watcher
	detector *detector
}

// Next shows the events to the detector first.
func (w *guardedWatcher) Next(limit int) (backend.Batch, error) {
	batch, err := w.Watcher.Next(limit)
	w.detector.locked(func() {
		for _, ev := range batch.Events {
			w.detector.event(ev)
		}
	})
	return batch, err
}

// RequestProgress passes the request on.
func (w *guardedWatcher) RequestProgress(ctx context.Context) error {
	return backend.RequestProgress(ctx, w.Watcher)
}

// guardedEmitter is a guardedBackend over one that can emit.
type guardedEmitter struct {
	*guardedBackend
	emitter backend.Emitter
}

// Emit does for emitted values what Put does for written ones.
func (g *guardedEmitter) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	given := g.detector.given(draft)
	o, err := g.emitter.Emit(ctx, draft)
	if err == nil {
		g.detector.wrote(o, given, g.detector.emitted)
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
