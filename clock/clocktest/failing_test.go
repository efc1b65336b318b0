package clocktest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFailing_PanicsAsOftenAsItIsToldTo(t *testing.T) {
	c := &clocktest.Failing{Clock: clock.NewVirtual(time.Unix(0, 0))}
	read := func() { c.Now() }
	require.NotPanics(t, read)
	c.Fail(clocktest.Now, 1, 2)
	require.NotPanics(t, read)
	c.AfterFunc(time.Minute, func() {}).Stop()
	require.Panics(t, read)
	require.Equal(t, 1, c.Left(clocktest.Now))
	require.Panics(t, read)
	require.NotPanics(t, read)
	require.Zero(t, c.Left(clocktest.Now))
}

func TestFailing_TimerThatItFailsToStopGoesOn(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(0, 0))
	c := &clocktest.Failing{Clock: virtual}
	timer := c.AfterFunc(time.Minute, func() {})
	c.Fail(clocktest.Stop, 0, 1)
	require.Panics(t, func() { timer.Stop() })
	require.Equal(t, 1, virtual.Pending())
	require.True(t, timer.Stop())
}

func TestFailing_CountsSomeCallsOnly(t *testing.T) {
	c := &clocktest.Failing{
		Clock:  clock.NewVirtual(time.Unix(0, 0)),
		Counts: func(_ clocktest.Call, d time.Duration) bool { return d == time.Minute },
	}
	c.Fail(clocktest.AfterFunc, 0, 1)
	require.NotPanics(t, func() { c.AfterFunc(time.Second, func() {}).Stop() })
	require.Panics(t, func() { c.AfterFunc(time.Minute, func() {}) })
}

func ExampleFailing() {
	c := &clocktest.Failing{Clock: clock.NewVirtual(time.Unix(0, 0))}
	c.Fail(clocktest.Now, 0, 1)
	func() {
		defer func() { fmt.Println(recover()) }()
		c.Now()
	}()
	fmt.Println(c.Now().UTC())
	// Output:
	// the clock fails: Now
	// 1970-01-01 00:00:00 +0000 UTC
}
