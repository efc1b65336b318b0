package registry

import (
	"context"
	"encoding/json"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/convert"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// core is a [Store] without its type of objects.
type core struct {
	*form
	admit       []Admitter
	schema      json.RawMessage
	fields      []string
	hidesFields bool // Config.HiddenFields are set
	readOnly    bool // for the users of Resources
	// deprecated is the warning for clients.
	deprecated string
	// storageVersion is empty if the store is a replica.
	storageVersion string
	// decoders are for bodies that are not JSON, by media type.
	decoders map[string]func([]byte) ([]byte, error)
	engine   reads
	// uncached: the engine has no cache, and does not know which revision storage has reached.
	uncached bool
	// storage takes the writes until the engine stops taking writes. The engine's typed
	// methods do not suffice: they do not return the object that is replaced.
	storage *backend.Storage
	// converts is the backend that converts the objects of storage; nil if it has them as they are shown.
	converts *convert.Backend
	now      func() time.Time
	// forwarder takes the writes in place of storage if the store is a replica.
	forwarder Forwarder
	// applier is nil if there is no server-side apply.
	applier Applier
	// mergeObject and mergeScale are nil if there are no strategic merge patches.
	mergeObject, mergeScale Merge
}

// reads is an engine as the core sees it.
type reads interface {
	get(ctx context.Context, key string, opts engine.GetOptions) (*store.Object, error)
	list(ctx context.Context, opts engine.ListOptions) (*objects, error)
	watch(ctx context.Context, opts engine.WatchOptions) (events, error)
	waitFor(ctx context.Context, rev engine.Revision) error
	timeline(ctx context.Context) (engine.Timeline, error)
	readiness() engine.Readiness
}

// objects are a page of a list.
type objects struct {
	items     []*store.Object
	revision  engine.Revision
	next      string
	remaining int
	timeline  engine.Timeline
}

// events are a running watch: a [Stream] that does not know the form of its objects.
type events interface {
	Next(ctx context.Context) ([]store.Event, error)
	Stop()
	Revision() engine.Revision
	Lag() uint64
}

// typedReads is an engine of T as [reads].
type typedReads[T any] struct{ of *engine.Engine[T] }

func (r typedReads[T]) get(ctx context.Context, key string, opts engine.GetOptions) (*store.Object, error) {
	o, err := r.of.Get(ctx, key, opts)
	return store.Header(o), err
}

func (r typedReads[T]) list(ctx context.Context, opts engine.ListOptions) (*objects, error) {
	l, err := r.of.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &objects{store.Headers(l.Items), l.Revision, l.Continue, l.Remaining, l.Timeline}, nil
}

func (r typedReads[T]) watch(ctx context.Context, opts engine.WatchOptions) (events, error) {
	w, err := r.of.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return typedEvents[T]{w}, nil
}

func (r typedReads[T]) waitFor(ctx context.Context, rev engine.Revision) error {
	return r.of.WaitFor(ctx, rev)
}

func (r typedReads[T]) timeline(ctx context.Context) (engine.Timeline, error) {
	return r.of.Timeline(ctx)
}

func (r typedReads[T]) readiness() engine.Readiness { return r.of.Readiness() }

// typedEvents is a watch of T as [events].
type typedEvents[T any] struct{ of *engine.Watch[T] }

func (e typedEvents[T]) Next(ctx context.Context) ([]store.Event, error) {
	batch, err := e.of.Next(ctx)
	return store.EventHeaders(batch), err
}

func (e typedEvents[T]) Stop()                     { e.of.Stop() }
func (e typedEvents[T]) Revision() engine.Revision { return e.of.Revision() }
func (e typedEvents[T]) Lag() uint64               { return e.of.Lag() }
