package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Whatever the shape, as many calls are due as the rate says.
func TestSchedulesKeepTheRate(t *testing.T) {
	for _, shape := range []scenario.Shape{scenario.Steady, scenario.Poisson, scenario.Bursts} {
		s := newSchedule(shape, 1000, 50, 0.5, rand.New(rand.NewPCG(1, 2)))
		n, last := 0, time.Duration(0)
		for due := s.due(); due < 10*time.Second; due = s.due() {
			require.GreaterOrEqual(t, due, last)
			last = due
			n++
		}
		require.InDelta(t, 10_000, n, 300, "%s", shape)
	}
}

func TestBurstsComeAtOnce(t *testing.T) {
	s := newSchedule(scenario.Bursts, 100, 10, 0, nil)
	for range 10 {
		require.Zero(t, s.due())
	}
	require.Equal(t, 100*time.Millisecond, s.due())
}

func TestSchedulesDependOnTheSeedAlone(t *testing.T) {
	draw := func(seed uint64) (all []time.Duration) {
		s := newSchedule(scenario.Poisson, 1000, 0, 0, rand.New(rand.NewPCG(seed, 0)))
		for range 100 {
			all = append(all, s.due())
		}
		return all
	}
	require.Equal(t, draw(1), draw(1))
	require.NotEqual(t, draw(1), draw(2))
}

func TestItemsAreAsTheScenarioSays(t *testing.T) {
	o := &scenario.Objects{
		Count: 10, Namespaces: 3, Size: scenario.Size{Min: 5, Max: 7},
		Fields: map[string]int{"node": 4}, Labels: map[string]int{"app": 2},
	}
	m, again := newMaker(o, 7, 1), newMaker(o, 7, 1)
	shared := map[*attrs]bool{}
	for n := range 100 {
		it := m.object(n)
		require.Equal(t, it, again.object(n), "one seed, one object")
		require.Equal(t, o.Key(n), it.key)
		require.Contains(t, []string{"node-0", "node-1", "node-2", "node-3"}, it.attrs.fields["node"])
		require.Contains(t, []string{"app-0", "app-1"}, it.attrs.labels["app"])
		require.True(t, len(it.payload) >= 5 && len(it.payload) <= 7)
		shared[it.attrs] = true
	}
	require.Len(t, shared, 8, "equal attributes are shared")
	file := m.file("cmd/tool/main.go")
	require.Equal(t, "cmd/tool", file.attrs.fields["dir"])
	require.Equal(t, "go", file.attrs.fields["ext"])
}

func TestStrikesMeetTheCallsTheyAreFor(t *testing.T) {
	s := newStrikes()
	require.NoError(t, s.meet(t.Context(), scenario.OnList))
	fail := s.begin(&scenario.Fault{Kind: scenario.FaultFail, When: scenario.During(scenario.OnList)})
	require.ErrorIs(t, s.meet(t.Context(), scenario.OnList), errInjected)
	require.NoError(t, s.meet(t.Context(), scenario.OnPut))
	s.end(fail)
	require.NoError(t, s.meet(t.Context(), scenario.OnList))
	require.Equal(t, uint64(1), fail.struck.Load())
}

func TestStuckCallsEndWithTheFaultOrTheirContext(t *testing.T) {
	s := newStrikes()
	stick := s.begin(&scenario.Fault{Kind: scenario.FaultStick})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	require.ErrorIs(t, s.meet(ctx, scenario.OnPut), gone)
	met := make(chan error)
	go func() { met <- s.meet(t.Context(), scenario.OnPut) }()
	for stick.struck.Load() < 2 {
		runtime.Gosched()
	}
	s.end(stick)
	require.NoError(t, <-met)
	s.begin(&scenario.Fault{Kind: scenario.FaultDelay, Delay: time.Hour})
	require.ErrorIs(t, s.meet(ctx, scenario.OnPut), gone)
}

func TestTheClockJumpsBothWays(t *testing.T) {
	var c jumpClock
	c.jump(time.Hour)
	require.Greater(t, time.Until(c.Now()), 59*time.Minute)
	c.jump(-2 * time.Hour)
	require.Less(t, time.Until(c.Now()), -59*time.Minute)
}

func TestLatencyIsCutOffAndSummedUp(t *testing.T) {
	r := newRecorder()
	for i := range 100 {
		r.record(i, int64(i+1)*int64(time.Millisecond))
	}
	r.record(0, int64(48*time.Hour))
	r.record(0, -5)
	other := newHistogram()
	r.drain(other)
	r.drain(other)
	s := stage("x", "", r.total)
	require.Equal(t, int64(102), s.Count)
	require.Equal(t, int64(102), other.TotalCount())
	require.InEpsilon(t, 0.050, s.P50, 0.03)
	require.InEpsilon(t, longest.Seconds(), s.Max, 0.03)
	require.Equal(t, 100.0, s.Curve[len(s.Curve)-1].Percentile)
	require.Empty(t, stage("none", "", newHistogram()).Curve)
}
