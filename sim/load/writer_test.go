package load

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/load/internal/timing"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// writers returns those of a group of two, over a hundred objects.
func writers(t *testing.T, hot float64) [2]*writer {
	t.Helper()
	s := &scenario.Scenario{
		Objects: scenario.Objects{Count: 100},
		Writers: []scenario.Writer{{Count: 2, Rate: 10, Hot: hot}},
	}
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	r := &run{plan: plan}
	r.groupCallers()
	return [2]*writer(r.writers())
}

func TestWriters_ShareTheObjects(t *testing.T) {
	both := writers(t, 0)
	all := append(slices.Clone(both[0].live), both[1].live...)
	slices.Sort(all)
	require.Len(t, slices.Compact(all), 100)
	require.NotEqual(t, both[0].next, both[1].next, "nor do they create the same")
}

// Otherwise some objects, and their watchers, would be without load.
func TestWriters_ShareTheObjectsOnlyWithThoseThatStoreThem(t *testing.T) {
	plan, err := (&scenario.Scenario{
		Objects: scenario.Objects{Count: 10},
		Writers: []scenario.Writer{
			{Rate: 1, Mix: scenario.Mix{Emit: 1}}, {Rate: 1}, {Trace: scenario.ShippedTrace}, {Rate: 1, Count: 2, Mix: scenario.Mix{Emit: 1, Delete: 1}},
		},
	}).Resolve(scenario.Options{})
	require.NoError(t, err)
	r := &run{plan: plan}
	r.groupCallers()
	var live []int
	for _, w := range r.writers() {
		live = append(live, w.live...)
	}
	slices.Sort(live)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, live)
	require.Empty(t, r.writers()[0].live)
	require.Empty(t, r.writers()[2].live)
}

// An engine that acknowledges a write with the object that it has, without storing the new one,
// would pass for a fast one: no watcher misses an event that there never was.
func TestWriters_FindAWriteThatIsLost(t *testing.T) {
	r := newStartedRun(t, &scenario.Scenario{Objects: scenario.Objects{Count: 1}, Writers: []scenario.Writer{{Rate: 1}}})
	require.NoError(t, r.populate(t.Context()))
	w := r.writers()[0]
	require.NoError(t, w.update(t.Context(), 1, 0))
	require.NoError(t, w.create(t.Context(), 2))
	require.Empty(t, r.judge().broken)

	lose := r.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpPut}, Do: func(_ context.Context, c *faulty.Call, _ func()) { c.Object = c.Prev }})
	defer lose.Remove()
	require.NoError(t, w.update(t.Context(), 3, 0))
	require.Equal(t, []string{`acknowledged: writers-1: a write of "ns-0/obj-0" was answered with an object that it has not stored, of revision 3`}, r.judge().broken)
}

func TestWriters_FindAWriteOfEachKindThatIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		op    faulty.Op
		write func(context.Context, *writer) error
	}{
		"create": {faulty.OpPut, func(ctx context.Context, w *writer) error { return w.create(ctx, 1) }},
		"delete": {faulty.OpRemove, func(ctx context.Context, w *writer) error { return w.delete(ctx, 0) }},
		"emit":   {faulty.OpEmit, func(ctx context.Context, w *writer) error { return w.emit(ctx, 1) }},
		"put of a trace": {faulty.OpPut, func(ctx context.Context, w *writer) error {
			_, err := w.apply(ctx, 1, &trace.Change{Op: trace.Put, Key: "a", Version: "2"})
			return err
		}},
		"delete of a trace": {faulty.OpRemove, func(ctx context.Context, w *writer) error {
			_, err := w.apply(ctx, 1, &trace.Change{Op: trace.Delete, Key: "a"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStartedRun(t, &scenario.Scenario{Objects: scenario.Objects{Count: 3}, Writers: []scenario.Writer{{Rate: 1}}})
			require.NoError(t, r.populate(t.Context()))
			w := newWriter(r, r.callers[0], &r.plan.Writers[0], 0, 0)
			w.own(0, 1)
			for range 2 { // the second changes nothing
				_, err := w.apply(t.Context(), 1, &trace.Change{Op: trace.Put, Key: "a", Version: "1"})
				require.NoError(t, err)
			}
			older, err := r.storage.Get(t.Context(), "a")
			require.NoError(t, err)
			require.Empty(t, r.judge().broken)
			lose := r.storage.Add(faulty.Rule{Ops: []faulty.Op{c.op}, Do: func(_ context.Context, c *faulty.Call, _ func()) { c.Object = older }})
			defer lose.Remove()
			require.NoError(t, c.write(t.Context(), w))
			require.Len(t, r.judge().broken, 1)
			require.Contains(t, r.judge().broken[0], "acknowledged: ")
		})
	}
}

// The writers of a group write their parts of a burst at the same time. Otherwise a
// burst of a hundred would be four of twenty-five, or no burst at all.
func TestWriters_BurstTogether(t *testing.T) {
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

func TestWriters_HotKeysGetMostOfTheWrites(t *testing.T) {
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

// A trace does not take longer because the engine does: what is due and cannot be
// made is counted.
func TestTrace_ThatIsDelayedEndsInTime(t *testing.T) {
	s := &scenario.Scenario{
		Writers: []scenario.Writer{{Trace: scenario.ShippedTrace}},
		Faults:  []scenario.Fault{{Kind: scenario.FaultDelay, Delay: 70 * time.Millisecond, When: scenario.During(scenario.OnPut)}},
	}
	plan, err := s.Resolve(scenario.Options{Duration: 100 * time.Millisecond})
	require.NoError(t, err)
	traces, err := readTraces(plan)
	require.NoError(t, err)
	rep := inBubble(t, plan)
	require.Positive(t, rep.Metrics["unwritten"])
	require.Equal(t, float64(len(traces[scenario.ShippedTrace])), rep.Metrics["writes"]+rep.Metrics["unwritten"])
}

// Writes that an interrupt prevents are not counted as missed.
func TestTrace_ThatIsInterruptedHasMissedNothing(t *testing.T) {
	r := newStartedRun(t, &scenario.Scenario{Writers: []scenario.Writer{{Trace: scenario.ShippedTrace}}})
	var err error
	r.traces, err = readTraces(r.plan)
	require.NoError(t, err)
	r.begin()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	r.writers()[0].write(ctx)
	require.Zero(t, r.callers[0].omissions())
}

// The next call of a very low rate is due long after the end, whenever the group starts.
func TestCalls_OfALowRateAreNotDue(t *testing.T) {
	r := &run{plan: &scenario.Plan{}, stopwatch: timing.NewStopwatch()}
	r.stopwatch.Begin()
	g := newCallers(r, "writers", "w", 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	clock := pace.NewSchedule(scenario.Steady, 1e-12, 0, 0.5, nil)
	g.callOnSchedule(ctx, clock, time.Hour, 2*time.Hour, func(context.Context, int64) error {
		stop()
		return nil
	})
	require.Zero(t, g.successes()+g.failures()+g.omissions())
}
