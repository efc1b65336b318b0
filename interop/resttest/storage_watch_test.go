package resttest_test

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
)

// watching is a watch of a registry as one of the API server.
type watching struct {
	stream registry.Stream
	events chan watch.Event
	cancel context.CancelFunc
}

func (s *storage) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	rev, err := strconv.ParseUint(options.ResourceVersion, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	which := s.which(ctx, options)
	stream, err := s.resource.Watch(ctx, engine.WatchOptions{
		From: engine.Revision(rev), Prefix: which.Prefix, LabelSelector: which.LabelSelector, FieldSelector: which.FieldSelector,
	})
	if err != nil {
		return nil, s.status(err, "")
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watching{stream, make(chan watch.Event), cancel}
	go w.run(ctx)
	return w, nil
}

func (w *watching) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch, and waits until no goroutine is left of it.
func (w *watching) Stop() {
	w.cancel()
	for range w.events {
		continue
	}
}

// run passes on events until ctx is done or the watch ends.
func (w *watching) run(ctx context.Context) {
	defer close(w.events)
	defer w.stream.Stop()
	for {
		batch, err := w.stream.Next(ctx)
		if err != nil {
			return
		}
		for _, e := range batch {
			if !w.send(ctx, &e) {
				return
			}
		}
	}
}

// send passes on an event, and reports whether to go on.
func (w *watching) send(ctx context.Context, e *store.Event) bool {
	kind := map[store.EventType]watch.EventType{store.Added: watch.Added, store.Modified: watch.Modified, store.Deleted: watch.Deleted}[e.Type]
	if kind == "" {
		return true
	}
	o, err := decode(w.stream.Item(e.Object))
	if err != nil {
		return false
	}
	select {
	case w.events <- watch.Event{Type: kind, Object: o}:
		return true
	case <-ctx.Done():
		return false
	}
}
