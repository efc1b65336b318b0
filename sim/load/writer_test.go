package load

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// writers returns those of a group of two, over a hundred objects.
func writers(t *testing.T, hot float64) (both [2]*writer) {
	t.Helper()
	s := &scenario.Scenario{
		Objects: scenario.Objects{Count: 100},
		Writers: []scenario.Writer{{Count: 2, Rate: 10, Hot: hot}},
	}
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	r := &run{plan: plan}
	r.groupCallers()
	for i := range both {
		both[i] = newWriter(r, r.callers[0], &plan.Writers[0], i, i, 2)
	}
	return both
}

func TestWritersShareTheObjects(t *testing.T) {
	both := writers(t, 0)
	all := append(slices.Clone(both[0].live), both[1].live...)
	slices.Sort(all)
	require.Len(t, slices.Compact(all), 100)
	require.NotEqual(t, both[0].next, both[1].next, "nor do they create the same")
}

// What a group writes at once it writes at once, however many they are. Else a
// burst of a hundred would be four of twenty-five, or no burst at all.
func TestWritersBurstTogether(t *testing.T) {
	for _, group := range []scenario.Writer{
		{Count: 1, Rate: 5000, Burst: 100}, {Count: 4, Rate: 5000, Burst: 100}, {Count: 8, Rate: 5000, Burst: 101},
		{Count: 100, Rate: 5000, Burst: 100}, {Count: 7, Rate: 70, Burst: 2},
	} {
		group.Shape = scenario.Bursts
		plan, err := (&scenario.Scenario{Writers: []scenario.Writer{group}}).Resolve(scenario.Options{})
		require.NoError(t, err)
		spec := &plan.Writers[0]
		due := map[time.Duration]int{}
		for part := range spec.Count {
			clock := schedule(spec, part, nil)
			for at := clock.Due(); at < 995*time.Millisecond; at = clock.Due() {
				due[at.Round(time.Microsecond)]++
			}
		}
		require.InDelta(t, spec.Rate/float64(spec.Burst), len(due), 1, "%+v", group)
		for at, n := range due {
			require.Equal(t, max(group.Burst, group.Count), n, "at %v of %+v", at, group)
		}
	}
}

func TestHotKeysGetMostOfTheWrites(t *testing.T) {
	busiest := func(hot float64) (most int) {
		w, picked := writers(t, hot)[0], map[int]int{}
		for range 10_000 {
			at := w.pick()
			picked[at]++
			most = max(most, picked[at])
		}
		return most
	}
	require.InDelta(t, 200, busiest(0), 100, "fifty objects, alike")
	require.Greater(t, busiest(2), 5000)
	require.Greater(t, busiest(2), busiest(1.1))
}
