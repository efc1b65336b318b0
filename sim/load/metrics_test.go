package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// Without writes there is no latency to compare, in an assertion or with another run's: zero
// would be the best there is.
func TestAssertions_OfALatencyThatWasNotMeasuredFail(t *testing.T) {
	rep := run1(t, &scenario.Scenario{
		Watchers: []scenario.Watcher{{}},
		Assert:   []scenario.Assertion{"p99 < 50ms", "informer-p99 < 1ms", "lost = 0"},
	})
	require.False(t, rep.OK())
	require.Contains(t, rep.Metrics, "lost")
	for name := range timed {
		require.NotContains(t, rep.Metrics, name)
	}
	for _, a := range rep.Assertions[:2] {
		require.True(t, a.Unmeasured, a.Text)
		require.False(t, a.Holds, a.Text)
		require.Equal(t, "not known: nothing was measured", a.Shown())
	}
	require.True(t, rep.Assertions[2].Holds)
}

// Watchers that use engine.Follow do not show their watches, so nothing says how far they
// are behind, whatever others beside them are.
func TestAssertions_OfTheLagOfWatchersWithoutItFail(t *testing.T) {
	for consumer, measured := range map[scenario.Consumer]bool{scenario.Follow: false, scenario.Queue: false, scenario.Batches: true} {
		rep := inBubble(t, brief(t, &scenario.Scenario{
			Watchers: []scenario.Watcher{{Consumer: consumer}, {Consumer: scenario.Handler}}, Writers: []scenario.Writer{{Rate: 100}},
			Assert: []scenario.Assertion{"lag < 1000", "stalled = 0", "lost = 0"},
		}))
		for _, a := range rep.Assertions[:2] {
			require.Equal(t, measured, !a.Unmeasured, "%s %s", consumer, a.Text)
			require.Equal(t, measured, a.Holds, "%s %s", consumer, a.Text)
		}
		require.True(t, rep.Assertions[2].Holds)
	}
}

func TestMetrics_TimesAreThoseOfStages(t *testing.T) {
	for _, m := range scenario.Metrics {
		_, known := timed[m.Name]
		require.Equal(t, m.Unit == scenario.Time, known, m.Name)
	}
}

// The metrics of one group must not hide those of another.
func TestAssertions_OfOneGroup(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Settle:  time.Second, // for the one that will not read it all
		Objects: scenario.Objects{Count: 10},
		Writers: []scenario.Writer{{Name: "clients", Rate: 1000, Start: time.Millisecond}}, // once all else has begun
		Watchers: []scenario.Watcher{
			{Name: "healthy"}, {Name: "paused", Consume: scenario.Consume{Every: time.Nanosecond, Pause: time.Hour}},
		},
		Assert: []scenario.Assertion{
			"healthy.lost = 0", "healthy.unread = 0", "healthy.p99 > 0s", "clients.max > 0s",
			"paused.unread = 0", "paused.p99 < 1h",
		},
		Faults: []scenario.Fault{{Kind: scenario.FaultDelay, Delay: time.Millisecond, When: scenario.During(scenario.OnPut)}},
	}))
	for i, holds := range []bool{true, true, true, true, false, false} {
		require.Equal(t, holds, rep.Assertions[i].Holds, "%+v", rep.Assertions[i])
	}
	require.True(t, rep.Assertions[5].Unmeasured)
}

func TestMetrics_EveryOneOfAGroupIsMeasured(t *testing.T) {
	for _, names := range scenario.GroupMetrics {
		for _, name := range names {
			require.Contains(t, ofGroup, name)
		}
	}
}

// Once the load is over, the judge needs memory that the engine did not.
func TestMetrics_TheHeapIsThatOfTheLoad(t *testing.T) {
	r := &run{load: time.Second, sampler: &sampler{samples: []report.Sample{{At: 0.5, Heap: 10}, {At: 1, Heap: 20}, {At: 1.5, Heap: 100}}}}
	m := map[string]float64{}
	r.addSamples(m)
	require.Equal(t, 20.0, m["heap"])
}
