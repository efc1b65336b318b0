package expiry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
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

// moody is a clock that panics while it is told to.
type moody struct {
	*clock.Virtual
	now, afterFunc bool
}

func (m *moody) Now() time.Time {
	if m.now {
		panic("no time")
	}
	return m.Virtual.Now()
}

func (m *moody) AfterFunc(d time.Duration, f func()) clock.Timer {
	if m.afterFunc {
		panic("no timers")
	}
	return m.Virtual.AfterFunc(d, f)
}

// An alarm is not set by a clock that panics, and is by the next try, also for the same time.
func TestAlarm_IsSetOnceTheClockIsWell(t *testing.T) {
	for name, ill := range map[string]moody{"no time": {now: true}, "no timers": {afterFunc: true}} {
		t.Run(name, func(t *testing.T) {
			m, rung := &moody{Virtual: clock.NewVirtual(noon)}, 0
			a := expiry.NewAlarm(m, func() { rung++ })
			at := noon.Add(time.Hour)
			a.Set(at)
			m.now, m.afterFunc = ill.now, ill.afterFunc
			a.Set(at.Add(time.Hour))
			a.Set(at)
			a.SetIn(time.Hour)
			require.False(t, a.IsSet())
			require.Zero(t, m.Pending(), "it does not ring at a time that was replaced")

			m.now, m.afterFunc = false, false
			a.Set(at)
			require.True(t, a.IsSet())
			m.Advance(time.Hour)
			require.Equal(t, 1, rung)
		})
	}
}

func TestNow_ContainsAPanicOfTheClock(t *testing.T) {
	m := &moody{Virtual: clock.NewVirtual(noon)}
	now, err := expiry.Now(m)
	require.NoError(t, err)
	require.Equal(t, noon, now)
	m.now = true
	_, err = expiry.Now(m)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorContains(t, err, "Clock.Now")
}
