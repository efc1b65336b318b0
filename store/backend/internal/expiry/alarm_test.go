package expiry_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/usercode"
)

func TestAlarm_RingsOnceAtItsTime(t *testing.T) {
	virtual, rung := clock.NewVirtual(noon), 0
	a := expiry.NewAlarm(virtual, func() { rung++ })
	a.Set(virtual.Now().Add(time.Minute))
	a.Set(virtual.Now().Add(2 * time.Minute))
	require.True(t, a.IsSet())
	require.Equal(t, 1, virtual.Pending())
	virtual.Advance(time.Minute)
	require.Zero(t, rung)
	virtual.Advance(time.Minute)
	require.Equal(t, 1, rung)
	a.Rang()
	require.False(t, a.IsSet())
	a.Set(virtual.Now())
	a.Set(expiry.Never)
	require.Zero(t, virtual.Pending())
}

func TestAlarm_RingsAfterATime(t *testing.T) {
	virtual, rung := clock.NewVirtual(noon), 0
	a := expiry.NewAlarm(virtual, func() { rung++ })
	a.SetIn(time.Minute)
	virtual.Advance(time.Minute - 1)
	require.Zero(t, rung)
	virtual.Advance(1)
	require.Equal(t, 1, rung)
}

// A timer does not follow the wall clock. Times that both have a monotonic reading need not either.
func TestAlarm_RingsEarlyIfObjectsExpireByTheWallClock(t *testing.T) {
	start, rung := time.Now(), 0
	virtual, q := clock.NewVirtual(start), expiry.NewQueue()
	a := expiry.NewAlarm(virtual, func() { rung++ })
	sooner := &store.Object{Key: "sooner", Expires: start.Add(time.Hour)}
	later := &store.Object{Key: "later, from a file", Expires: start.Round(0).Add(2 * time.Hour)}
	q.Add(sooner, 1)
	a.SetTo(q, start)
	virtual.Advance(expiry.LookAgain)
	require.Zero(t, rung)
	q.Add(later, 1)
	a.SetTo(q, start)
	virtual.Advance(expiry.LookAgain)
	require.Equal(t, 1, rung)

	a.Rang()
	a.SetTo(q, virtual.Now())
	q.Remove(later)
	a.SetTo(q, virtual.Now())
	virtual.Advance(time.Hour - 2*expiry.LookAgain - 1)
	require.Equal(t, 1, rung)
	virtual.Advance(1)
	require.Equal(t, 2, rung)
	a.Rang()
	q.Remove(sooner)
	a.SetTo(q, virtual.Now())
	require.Zero(t, virtual.Pending())
}

// An alarm is not set by a clock that panics, and is by the next try, also for the same time.
func TestAlarm_IsSetOnceTheClockIsWell(t *testing.T) {
	for _, call := range []clocktest.Call{clocktest.Now, clocktest.AfterFunc} {
		t.Run(string(call), func(t *testing.T) {
			virtual, rung := clock.NewVirtual(noon), 0
			wire := &clocktest.Failing{Clock: virtual}
			a := expiry.NewAlarm(wire, func() { rung++ })
			at := noon.Add(time.Hour)
			a.Set(at)
			wire.Fail(call, 0, math.MaxInt)
			a.Set(at.Add(time.Hour))
			a.Set(at)
			a.SetIn(time.Hour)
			require.False(t, a.IsSet())
			require.Zero(t, virtual.Pending(), "it does not ring at a time that was replaced")

			wire.Fail(call, 0, 0)
			a.Set(at)
			require.True(t, a.IsSet())
			virtual.Advance(time.Hour)
			require.Equal(t, 1, rung)
		})
	}
}

func TestNow_ContainsAPanicOfTheClock(t *testing.T) {
	wire := &clocktest.Failing{Clock: clock.NewVirtual(noon)}
	now, err := expiry.Now(wire)
	require.NoError(t, err)
	require.Equal(t, noon, now)
	wire.Fail(clocktest.Now, 0, 1)
	_, err = expiry.Now(wire)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorContains(t, err, "Clock.Now")
}
