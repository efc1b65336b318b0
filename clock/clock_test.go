package clock_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// TestVirtual_Scenarios plays the scenarios in testdata/virtual. Their commands:
//
//	arm <name> in=<duration> [then=<name> after=<duration>]
//	    arms a timer that says its name, and may arm another when it fires
//	stop <name>
//	advance by=<duration>
//	jump by=<duration>
//	next
func TestVirtual_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/virtual", func(t *testing.T, path string) {
		s := &clockScenario{clock: clock.NewVirtual(start), timers: map[string]clock.Timer{}}
		datadriven.RunTest(t, path, s.play)
	})
}

type clockScenario struct {
	clock  *clock.Virtual
	timers map[string]clock.Timer
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

func TestVirtual_CanBeUsedFromItsTimers(t *testing.T) {
	virtual := clock.NewVirtual(start)
	fired := 0
	var tick func()
	tick = func() {
		fired++
		virtual.AfterFunc(time.Second, tick)
		virtual.Advance(0)
	}
	virtual.AfterFunc(time.Second, tick)
	virtual.Advance(10 * time.Second)
	require.Equal(t, 10, fired)
	require.Equal(t, start.Add(10*time.Second), virtual.Now())
}

func TestVirtual_CallsThatOverlapLetTimePassTogether(t *testing.T) {
	virtual := clock.NewVirtual(start)
	virtual.AfterFunc(time.Second, func() {
		virtual.Advance(3 * time.Second)
		require.Equal(t, start.Add(4*time.Second), virtual.Now())
	})
	virtual.Advance(2 * time.Second)
	require.Equal(t, start.Add(4*time.Second), virtual.Now())
}

// A jump corrects the wall clock, which a monotonic reading would not show.
func TestVirtual_ShowsTimesWithoutAMonotonicReading(t *testing.T) {
	virtual := clock.NewVirtual(time.Now())
	before := virtual.Now()
	virtual.Jump(-time.Hour)
	virtual.AfterFunc(time.Minute, func() {})
	next, _ := virtual.Next()
	for _, at := range []time.Time{before, virtual.Now(), next} {
		require.True(t, at == at.Round(0), "%v", at)
	}
}

// Each timer fires once, and the time never goes back, whatever calls meet.
func TestVirtual_IsMovedByManyGoroutines(t *testing.T) {
	const goroutines, timers = 4, 500
	virtual := clock.NewVirtual(start)
	var fired, stopped atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			last := virtual.Now()
			for n := range timers {
				timer := virtual.AfterFunc(time.Duration(n%7)*time.Millisecond, func() { fired.Add(1) })
				virtual.Advance(time.Millisecond)
				now := virtual.Now()
				if now.Before(last) {
					t.Errorf("%v after %v", now, last)
				}
				last = now
				if n%3 == 0 && timer.Stop() {
					stopped.Add(1)
				}
			}
		})
	}
	all.Wait()
	virtual.Advance(time.Second)
	require.EqualValues(t, goroutines*timers, fired.Load()+stopped.Load())
	require.Zero(t, virtual.Pending())
	require.WithinRange(t, virtual.Now(), start.Add(timers*time.Millisecond+time.Second), start.Add(goroutines*timers*time.Millisecond+time.Second))
}

func TestReal_FiresAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.Real()
		began := wall.Now()
		fired := make(chan time.Time)
		wall.AfterFunc(time.Minute, func() { fired <- wall.Now() })
		stopped := wall.AfterFunc(time.Second, func() { t.Error("fired") })
		require.True(t, stopped.Stop())
		require.False(t, stopped.Stop())
		require.Equal(t, time.Minute, (<-fired).Sub(began))
	})
}

// brokenTimer is a timer of a user's clock.
type brokenTimer struct{}

func (brokenTimer) Stop() bool { panic("broken timer") }

func TestStop_ForgetsATimerThatPanics(t *testing.T) {
	timer := clock.Timer(brokenTimer{})
	require.Panics(t, func() { clock.Stop(&timer) })
	require.Nil(t, timer)
}

func ExampleStop() {
	reminder := clock.Real().AfterFunc(time.Hour, func() { fmt.Println("an hour has passed") })
	clock.Stop(&reminder)
	clock.Stop(&reminder) // does nothing
	fmt.Println(reminder)
	// Output: <nil>
}

// Code that takes a Clock runs on the real time in production, and in tests on a virtual one.
func ExampleReal() {
	rings := make(chan string)
	wake := func(c clock.Clock) clock.Timer {
		return c.AfterFunc(time.Millisecond, func() { rings <- "awake" })
	}
	alarm := wake(clock.Real())
	fmt.Println(<-rings, alarm.Stop())
	// Output: awake false
}

func ExampleVirtual() {
	c := clock.NewVirtual(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	c.AfterFunc(time.Minute, func() { fmt.Println("rings at", c.Now().Format(time.TimeOnly)) })
	c.Advance(time.Hour)
	fmt.Println("it is", c.Now().Format(time.TimeOnly))
	// Output:
	// rings at 12:01:00
	// it is 13:00:00
}
