package clocktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
)

func TestCounting_EndsARapidSuccession(t *testing.T) {
	c := &clocktest.Counting{Virtual: clock.NewVirtual(time.Unix(0, 0))}
	var again func()
	again = func() { c.AfterFunc(time.Nanosecond, again) }
	again()
	c.Advance(time.Minute)
	require.Equal(t, 1001, c.Timers)
	c.Advance(time.Hour)
	require.Equal(t, 1002, c.Timers)
}
