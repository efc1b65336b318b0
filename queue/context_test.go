package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/queue"
)

// waiting returns calls that wait until their contexts end, by name.
func waiting(t *testing.T) map[string]func(context.Context) error {
	fifo, err := queue.NewFIFO(thingKey)
	require.NoError(t, err)
	heap, err := queue.NewHeap(queue.HeapConfig[thing]{Key: thingKey, Less: func(a, b thing) bool { return a.Name < b.Name }})
	require.NoError(t, err)
	full, err := queue.NewRealFIFO(queue.RealFIFOConfig[thing]{Key: thingKey, Limit: 1})
	require.NoError(t, err)
	require.NoError(t, full.Add(thing{"a", "1"}))
	idle, err := queue.NewWorkQueue(queue.WorkQueueConfig[string]{})
	require.NoError(t, err)
	busy, err := queue.NewWorkQueue(queue.WorkQueueConfig[string]{})
	require.NoError(t, err)
	require.NoError(t, busy.Add("a"))
	_, err = busy.Get(t.Context())
	require.NoError(t, err)
	return map[string]func(context.Context) error{
		"Pop of a queue":    func(ctx context.Context) error { return fifo.Pop(ctx, func(thing, bool) error { return nil }) },
		"Pop of a heap":     func(ctx context.Context) error { _, err := heap.Pop(ctx); return err },
		"Room":              full.Room,
		"Get":               func(ctx context.Context) error { _, err := idle.Get(ctx); return err },
		"ShutDownWithDrain": busy.ShutDownWithDrain,
	}
}

// The cause says why a call was given up, whether its context has ended before or ends while it
// waits.
func TestContext_ItsCauseEndsEachCallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("the reason")
		ended, end := context.WithCancelCause(t.Context())
		end(reason)
		for name, call := range waiting(t) {
			require.Equal(t, reason, call(ended), name)
			ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, reason)
			require.Equal(t, reason, call(ctx), name)
			stop()
		}
	})
}
