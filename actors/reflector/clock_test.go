package reflector_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
)

// newFailingFixture is newFixture with a clock that fails when it is told to. A timer that it fails to stop
// goes on.
func newFailingFixture(t *testing.T) (*fixture, *clocktest.Failing) {
	failing := new(clocktest.Failing)
	return newFixtureBy(t, func(c clock.Clock) clock.Clock {
		failing.Clock = c
		return failing
	}), failing
}

// The delay of before the restart goes on, and does not end the one after it.
func TestRestart_ListsThoughTheClockFailsToStopADelay(t *testing.T) {
	r, failing := newFailingFixture(t)
	r.source.put("a", "1")
	r.source.fail("list", errReset, errReset)
	r.mirror.fail() // at the Unavailable, after the delay has begun
	failing.Fail(clocktest.Stop, 0, 2)
	r.start(r.config())
	require.Equal(t, 1, failing.Left(clocktest.Stop))
	r.pass(2*reflector.DefaultInitial - 1)
	require.Equal(t, 1, r.count("list"))
	r.pass(1)
	require.Equal(t, 2, r.count("list"))
	r.pass(4 * reflector.DefaultInitial)
	r.synced()
	require.Equal(t, uint64(1), r.ref.Stats().Restarts)
	require.Equal(t, 1, failing.Left(clocktest.Stop), "delays that are over are not stopped")
	failing.Fail(clocktest.Stop, 0, 0)
}

// The Reflector's parent waits for the call, and the call for its context.
func TestStop_CancelsABlockedListThoughTheClockFailsToStopItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBlockingFixture(t)
		failing := &clocktest.Failing{Clock: r.clock}
		r.system = newSystem(t, actors.SystemConfig{Clock: failing, Workers: 2})
		r.source.onList = r.block
		ref := r.start(t)
		<-r.entered
		failing.Fail(clocktest.Stop, 0, 1)
		ref.Stop()
		require.NoError(t, r.system.Close(context.Background()))
		r.clock.Advance(reflector.DefaultCallTimeout)
		require.Zero(t, r.system.Timers())
	})
}

func TestCalls_WhoseTimeoutTheClockFailsToStopLeaveNoWatchOpen(t *testing.T) {
	r, failing := newFailingFixture(t)
	r.source.put("a", "1")
	r.source.traits.Blocks = true
	failing.Fail(clocktest.Stop, 1, 1) // the list's is stopped before the watch's
	r.start(r.config())
	require.Zero(t, failing.Left(clocktest.Stop))
	require.Zero(t, r.source.open())
	r.pass(reflector.DefaultCallTimeout + seconds)
	require.Equal(t, 1, r.source.open())
	r.synced()
}
