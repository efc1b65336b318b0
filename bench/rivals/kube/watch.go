package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmill/watchmill/bench"
)

// watcher is the bench.Watch that a cacheWatcher is.
type watcher struct {
	watch.Interface
	done chan struct{}
}

func (s *store) Watch(ctx context.Context, what bench.Selection, from uint64, handle func(seq int64)) (bench.Watch, error) {
	if from == 0 {
		from = s.newest()
	}
	results, err := s.delegator.Watch(ctx, prefix, options(what, revisionString(from)))
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &watcher{Interface: results, done: make(chan struct{})}
	if handle != nil {
		s.consumers.Go(func() { w.consume(handle) })
	}
	return w, nil
}

// Settle waits for the consumers, whose channels are closed when a watch has
// ended.
func (s *store) Settle(context.Context) error {
	s.consumers.Wait()
	return nil
}

// consume gives the events to handle until there are no more.
func (w *watcher) consume(handle func(seq int64)) {
	defer close(w.done)
	for ev := range w.ResultChan() {
		if o, ok := ev.Object.(metav1.Object); ok && isChange(ev.Type) {
			handle(o.GetGeneration())
		}
	}
}

func isChange(t watch.EventType) bool {
	return t == watch.Added || t == watch.Modified || t == watch.Deleted
}

func (w *watcher) Done() <-chan struct{} { return w.done }

func (w *watcher) Drain(ctx context.Context, n int) int {
	for got := 0; got < n; {
		select {
		case ev, ok := <-w.ResultChan():
			if !ok {
				return got
			}
			if isChange(ev.Type) {
				got++
			}
		case <-ctx.Done():
			return got
		}
	}
	return max(n, 0)
}
