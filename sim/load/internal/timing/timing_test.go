package timing_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/sim/load/internal/timing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClock_JumpsBothWays(t *testing.T) {
	var c timing.Clock
	c.Jump(time.Hour)
	require.Greater(t, time.Until(c.Now()), 59*time.Minute)
	c.Jump(-2 * time.Hour)
	require.Less(t, time.Until(c.Now()), -59*time.Minute)
}

// A timer that waited for the clock would come late, or at once, for a reason that no program could see.
func TestClock_JumpsMoveNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c timing.Clock
		begun, after := time.Now(), make(chan time.Duration, 1)
		c.AfterFunc(time.Minute, func() { after <- time.Since(begun) })
		c.Jump(time.Hour)
		require.Equal(t, time.Minute, <-after)
	})
}

func TestStopwatch_CountsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timing.NewStopwatch()
		require.Positive(t, s.Now(), "no time is zero")
		require.Zero(t, s.Start())
		select {
		case <-s.Started():
			require.Fail(t, "it has not begun")
		default:
		}
		time.Sleep(time.Second)
		s.Begin()
		<-s.Started()
		require.Equal(t, s.Now(), s.Start())
		require.NoError(t, s.Until(t.Context(), s.At(time.Minute)))
		require.Equal(t, time.Minute, s.Elapsed())
		require.NoError(t, s.Until(t.Context(), s.At(time.Second)), "it is over")
		require.Equal(t, time.Minute, s.Elapsed())

		stopped := errors.New("stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		stop(stopped)
		require.Equal(t, stopped, s.Until(ctx, s.At(time.Hour)))
	})
}
