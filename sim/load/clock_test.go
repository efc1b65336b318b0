package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClock_JumpsBothWays(t *testing.T) {
	var c jumpClock
	c.jump(time.Hour)
	require.Greater(t, time.Until(c.Now()), 59*time.Minute)
	c.jump(-2 * time.Hour)
	require.Less(t, time.Until(c.Now()), -59*time.Minute)
}
