package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Watches are notified, closed and read while writers write, on many goroutines: none
// misses anything. Time stands still, so that no progress makes up for a notification
// that is lost.
func TestSource_WatchesWhileOthersComeAndGo(t *testing.T) {
	const keys, writes = 4, 200
	host, err := engine.NewHost(engine.HostConfig{Clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })
	require.NoError(t, e.WaitForRevision(ctx, 0))
	var busy, churning sync.WaitGroup
	for i := range keys {
		key := fmt.Sprintf("k/%d", i)
		w, more := watchSource(t, ctx, e.Source(), key)
		busy.Go(func() {
			defer w.Close()
			expectCounts(t, ctx, w, more, key, writes)
		})
		busy.Go(func() {
			for n := range writes {
				_, err := e.Put(ctx, pod{Name: key, N: n + 1})
				assert.NoError(t, err)
			}
		})
	}
	over := make(chan struct{})
	churning.Go(func() { churnSource(t, ctx, e.Source(), over) })
	busy.Wait()
	close(over)
	churning.Wait()
}

// watchSource watches a prefix of a source. When the watch has more to read,
// there is something in the channel.
func watchSource(t *testing.T, ctx context.Context, source engine.Source[pod], prefix string) (w backend.Watcher, more <-chan struct{}) {
	notified := make(chan struct{}, 1)
	w, err := source.Watch(ctx, backend.WatchOptions{Prefix: prefix, Notify: func() {
		select {
		case notified <- struct{}{}:
		default: // it has been notified already
		}
	}})
	require.NoError(t, err)
	return w, notified
}

// expectCounts reads a watch until it has seen the pod of that name with the numbers
// from 1 to last, each once and in order.
func expectCounts(t *testing.T, ctx context.Context, w backend.Watcher, more <-chan struct{}, name string, last int) {
	for seen := 0; seen < last; {
		batch, err := w.Next(7)
		if !assert.NoError(t, err) {
			return
		}
		for _, ev := range batch.Events {
			assert.Equal(t, pod{Name: name, N: seen + 1}, store.As[engine.Object[pod]](ev.Object).Value)
			seen++
		}
		if len(batch.Events) > 0 {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			assert.Fail(t, "it was not notified", "%s after %d", name, seen)
			return
		}
	}
}

// churnSource opens, reads once and closes watches, one after another, until over is
// closed.
func churnSource(t *testing.T, ctx context.Context, source engine.Source[pod], over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
		}
		w, err := source.Watch(ctx, backend.WatchOptions{Prefix: "k/0", Notify: func() {}})
		if !assert.NoError(t, err) {
			return
		}
		_, err = w.Next(1)
		assert.NoError(t, err)
		w.Close()
	}
}
