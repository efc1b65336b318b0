package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// TestVirtualClock_Scenarios plays the scenarios in testdata/clock. Their commands:
//
//	arm <name> in=<duration> [then=<name> after=<duration>]
//	    arms a timer that prints its name, and may arm another when it fires
//	stop <name>
//	advance by=<duration>
//	jump by=<duration>
//	next
func TestVirtualClock_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/clock", func(t *testing.T, path string) {
		s := &clockScenario{clock: actors.NewVirtualClock(start), timers: map[string]actors.Timer{}}
		datadriven.RunTest(t, path, s.play)
	})
}

type clockScenario struct {
	clock  *actors.VirtualClock
	timers map[string]actors.Timer
	out    strings.Builder
}

func (s *clockScenario) play(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	switch d.Cmd {
	case "arm":
		s.arm(t, d)
	case "stop":
		fmt.Fprintf(&s.out, "stopped: %v\n", s.timers[d.CmdArgs[0].Key].Stop())
	case "advance":
		s.clock.Advance(duration(t, d, "by"))
	case "jump":
		s.clock.Jump(duration(t, d, "by"))
	case "next":
		next, ok := s.clock.Next()
		fmt.Fprintf(&s.out, "next: %s %v\n", next.Format(time.TimeOnly), ok)
	default:
		d.Fatalf(t, "unknown command")
	}
	fmt.Fprintf(&s.out, "now %s, %d armed\n", s.clock.Now().Format(time.TimeOnly), s.clock.Pending())
	return s.out.String()
}

func (s *clockScenario) arm(t *testing.T, d *datadriven.TestData) {
	fire := s.says(d.CmdArgs[0].Key)
	if d.HasArg("then") {
		var then string
		d.ScanArgs(t, "then", &then)
		say, after := fire, duration(t, d, "after")
		fire = func() {
			say()
			s.clock.AfterFunc(after, s.says(then))
		}
	}
	s.timers[d.CmdArgs[0].Key] = s.clock.AfterFunc(duration(t, d, "in"), fire)
}

func (s *clockScenario) says(name string) func() {
	return func() { fmt.Fprintf(&s.out, "%s %s\n", s.clock.Now().Format(time.TimeOnly), name) }
}

func duration(t *testing.T, d *datadriven.TestData, arg string) time.Duration {
	var text string
	d.ScanArgs(t, arg, &text)
	dur, err := time.ParseDuration(text)
	require.NoError(t, err)
	return dur
}

func TestVirtualClock_CanBeUsedFromItsTimers(t *testing.T) {
	clock := actors.NewVirtualClock(start)
	fired := 0
	var tick func()
	tick = func() {
		fired++
		clock.AfterFunc(time.Second, tick)
		clock.Advance(0)
	}
	clock.AfterFunc(time.Second, tick)
	clock.Advance(10 * time.Second)
	require.Equal(t, 10, fired)
	require.Equal(t, start.Add(10*time.Second), clock.Now())
}

func TestRealClock_FiresAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := actors.RealClock()
		began := clock.Now()
		fired := make(chan time.Time)
		clock.AfterFunc(time.Minute, func() { fired <- clock.Now() })
		stopped := clock.AfterFunc(time.Second, func() { t.Error("fired") })
		require.True(t, stopped.Stop())
		require.False(t, stopped.Stop())
		require.Equal(t, time.Minute, (<-fired).Sub(began))
	})
}
