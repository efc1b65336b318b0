package clocktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock/clocktest"
)

func TestTick_MovesBothReadingsOfTheClock(t *testing.T) {
	for range 10 {
		before := time.Now()
		clocktest.Tick()
		now := time.Now()
		require.Positive(t, now.Sub(before))
		require.NotEqual(t, before.UnixNano(), now.UnixNano())
	}
}
