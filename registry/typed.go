package registry

import (
	"context"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/reads"
	"github.com/watchmill/watchmill/store"
)

// typedReads is an engine of T as [reads.Engine].
type typedReads[T any] struct{ of *engine.Engine[T] }

func (r typedReads[T]) Get(ctx context.Context, key string, opts engine.GetOptions) (*store.Object, error) {
	o, err := r.of.Get(ctx, key, opts)
	return store.Header(o), err
}

func (r typedReads[T]) List(ctx context.Context, opts engine.ListOptions) (*reads.Page, error) {
	l, err := r.of.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &reads.Page{Items: store.Headers(l.Items), Revision: l.Revision, Continue: l.Continue, Remaining: l.Remaining, Timeline: l.Timeline}, nil
}

func (r typedReads[T]) Watch(ctx context.Context, opts engine.WatchOptions) (reads.Watch, error) {
	w, err := r.of.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return typedWatch[T]{w}, nil
}

func (r typedReads[T]) WaitForRevision(ctx context.Context, rev engine.Revision) error {
	return r.of.WaitForRevision(ctx, rev)
}

func (r typedReads[T]) Timeline(ctx context.Context) (engine.Timeline, error) {
	return r.of.Timeline(ctx)
}

func (r typedReads[T]) Readiness() engine.Readiness { return r.of.Readiness() }

// typedWatch is a watch of T as [reads.Watch].
type typedWatch[T any] struct{ of *engine.Watch[T] }

func (w typedWatch[T]) Next(ctx context.Context) ([]store.Event, error) {
	batch, err := w.of.Next(ctx)
	return store.EventHeaders(batch), err
}

func (w typedWatch[T]) Stop()                     { w.of.Stop() }
func (w typedWatch[T]) Revision() engine.Revision { return w.of.Revision() }
func (w typedWatch[T]) Lag() uint64               { return w.of.Lag() }
