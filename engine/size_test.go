package engine_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// A Size that is out of all reason distorts the figures, but overflows nothing.
func TestStats_SizesOutOfAllReasonDoNotOverflow(t *testing.T) {
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Size = func(pod) int { return math.MaxInt } })
	for _, p := range []pod{{Name: "a"}, {Name: "b"}, {Name: "a", N: 1}, {Name: "a", N: 2}} {
		rev, err := revisionOf(e.Put(ctx, p))
		require.NoError(t, err)
		require.NoError(t, e.WaitForRevision(ctx, rev))
	}
	for what, bytes := range map[string]int64{"state": e.Stats().StateBytes, "window": e.Stats().WindowBytes} {
		require.Greater(t, bytes, int64(1<<30), what)
	}
	require.GreaterOrEqual(t, e.Stats().HistoryBytes, int64(0))
}

// The history of storage in memory counts whatever decorators are around the storage.
func TestStats_HistoryOfADecoratedBackendCounts(t *testing.T) {
	for _, detect := range []bool{false, true} {
		e, ctx := newEngine(t, func(c *engine.Config[pod]) {
			inner, err := memory.New(c.Schema(), memory.Options{FirstRevision: 1})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, inner.Close()) })
			c.Backend, c.Window.MaxEvents, c.DetectMutations = faulty.New(inner, faulty.Options{}), 10, detect
		})
		for n := range 200 {
			rev, err := revisionOf(e.Put(ctx, pod{Name: "a", N: n + 1}))
			require.NoError(t, err)
			require.NoError(t, e.WaitForRevision(ctx, rev))
		}
		require.Positive(t, e.Stats().HistoryBytes)
	}
}
