package engine_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// A Size that is out of all reason distorts the figures, but overflows nothing.
func TestStats_SizesOutOfAllReasonDoNotOverflow(t *testing.T) {
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Size = func(pod) int { return math.MaxInt } })
	for _, p := range []pod{{Name: "a"}, {Name: "b"}, {Name: "a", N: 1}, {Name: "a", N: 2}} {
		rev, err := revisionOf(e.Put(ctx, p))
		require.NoError(t, err)
		require.NoError(t, e.WaitFor(ctx, rev))
	}
	for what, bytes := range map[string]int64{"state": e.Stats().StateBytes, "window": e.Stats().WindowBytes} {
		require.Greater(t, bytes, int64(1<<30), what)
	}
	require.GreaterOrEqual(t, e.Stats().HistoryBytes, int64(0))
}
