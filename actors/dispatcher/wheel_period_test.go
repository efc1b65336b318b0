package dispatcher

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A period that stands for never leaves the bookmark before the deadline in its place.
func TestWheel_LongestPeriodDoesNotOverflow(t *testing.T) {
	w := newWheel[int](math.MaxInt64)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Empty(t, w.due(now))
	now = now.Add(time.Minute)
	w.schedule(1, now, time.Time{}, false)
	require.True(t, w.scheduled(1))
	w.schedule(2, now, now.Add(10*time.Second), false)
	require.True(t, w.scheduled(2))
	require.Empty(t, w.due(now))
	require.Equal(t, []int{2}, w.due(now.Add(9*time.Second)))
}
