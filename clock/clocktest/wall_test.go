package clocktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock/clocktest"
)

func TestSetWall_LeavesTheMonotonicReading(t *testing.T) {
	for _, d := range []time.Duration{time.Hour, -time.Hour} {
		now := time.Now()
		set := clocktest.SetWall(now, d)
		require.Equal(t, now.Round(0).Add(d), set.Round(0))
		require.Zero(t, now.Sub(set))
	}
}
