package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

func compare(t *testing.T, before, after []*report.Report) (*report.Comparison, string) {
	t.Helper()
	c, err := report.Compare(before, after)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, c.WriteText(&b))
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "note") {
			require.LessOrEqual(t, len([]rune(line)), 81, line)
		}
	}
	return c, b.String()
}

func compared(t *testing.T, before, after *report.Report) string {
	t.Helper()
	_, text := compare(t, []*report.Report{before}, []*report.Report{after})
	return text
}

// side returns a run for each p99.
func side(p99 ...float64) (runs []*report.Report) {
	for _, v := range p99 {
		r := sample()
		r.Metrics["p99"] = v
		runs = append(runs, r)
	}
	return runs
}

// change returns the change of the p99.
func change(t *testing.T, before, after []*report.Report) report.Change {
	t.Helper()
	c, _ := compare(t, before, after)
	require.Len(t, c.Changes, 1)
	require.Equal(t, "p99", c.Changes[0].Metric.Name)
	return c.Changes[0]
}

func TestCompare_SaysWhatChangedAndByHowMuch(t *testing.T) {
	before, after := sample(), sample()
	after.Build.Revision, after.Build.Modified = "0123456789abcdef", true
	after.Metrics["p99"] = 0.0246
	after.Metrics["writes/s"] = 900
	after.Metrics["lost"] = 0
	after.Metrics["stalled"] = 5
	after.Metrics["deliveries"] = 5_000_000
	after.Metrics["goroutines"] = 3.001
	after.Assertions[0].Holds, after.Assertions[1].Holds = true, false
	text := compared(t, before, after)
	for _, line := range []string{
		"storm: abc (1 run), then 0123456789ab, modified (1 run)\n",
		"lost                    2                    0             -100.0 %  ?\n",
		"stalled                 0                    5            from none  ?\n",
		"writes/s          1,000/s                900/s              -10.0 %  ?\n",
		"deliveries        250,000            5,000,000                20.0x  ?\n",
		"p99                12.3ms               24.6ms             +100.0 %  ?\n",
		"goroutines              3                    3              < 0.1 %  ?\n",
		"assertion  lost = 0 holds now\n",
		"assertion  p99 < 50ms no longer holds\n",
	} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, "heap", "it has not changed")
}

func TestCompare_SaysThatOneRunOfEachCannotTell(t *testing.T) {
	require.Contains(t, compared(t, sample(), sample()), "note       one run of each side cannot tell a change from noise: compare 4 or more of each\n")
	require.Equal(t, report.TooFew, change(t, side(1), side(2)).Evidence)
}

func TestCompare_TellsAChangeFromNoise(t *testing.T) {
	before := side(0.010, 0.011, 0.012, 0.013, 0.014, 0.015)
	moved := change(t, before, side(0.020, 0.021, 0.022, 0.023, 0.024, 0.025))
	require.Equal(t, report.Changed, moved.Evidence)
	require.InDelta(t, 0.002, moved.P, 0.0005)
	require.InDelta(t, 0.8, moved.Ratio(), 0.01)
	require.InDelta(t, 0.0125, moved.Before.Median, 1e-9)
	require.InDelta(t, 0.010, moved.Before.Low, 1e-9)
	require.InDelta(t, 0.015, moved.Before.High, 1e-9)

	_, text := compare(t, before, side(0.020, 0.021, 0.022, 0.023, 0.024, 0.025))
	require.Contains(t, text, "p99                12.5ms ± 20%         22.5ms ± 11%        +80.0 %  p=0.002\n")
	require.NotContains(t, text, "cannot tell")
	require.Contains(t, text, "\nmetric             before                after               change\n")

	same := change(t, before, side(0.0105, 0.0115, 0.0125, 0.0135, 0.0145, 0.0155))
	require.Equal(t, report.Noise, same.Evidence)
	_, text = compare(t, before, side(0.0105, 0.0115, 0.0125, 0.0135, 0.0145, 0.0155))
	require.Regexp(t, `p99 .* ~  p=0\.\d+\n`, text)
	require.Contains(t, text, "~ is no more than noise: chance alone does that in more than 5 % of cases")
	require.Contains(t, text, "one steady metric in 20 look changed")
}

// A metric is left out only if it has one value in all runs.
func TestCompare_ListsEachMetricThatVaries(t *testing.T) {
	require.Equal(t, report.Spread{Values: []float64{1, 2}, Median: 1.5, Low: 1, High: 2}, change(t, side(1, 1), side(2, 1)).After)
	require.Equal(t, []float64{1, 2}, change(t, side(2, 2), side(2, 1)).After.Values)
	_, text := compare(t, side(1, 1, 2), side(3, 1, 1))
	require.Regexp(t, `\np99 +1s ±100% +1s ±200% +none  \?\n`, strings.ReplaceAll(text, "± ", "±"))
}

// With many runs the interval of the median is narrower than what the runs span.
func TestCompare_HasTheIntervalOfTheMedian(t *testing.T) {
	var many []float64
	for i := range 20 {
		many = append(many, float64(i))
	}
	before := change(t, side(many...), side(many[1:]...)).Before
	require.Greater(t, before.Low, 0.0)
	require.Less(t, before.High, 19.0)
}

func TestCompare_KnowsHowManyRunsItTakes(t *testing.T) {
	for n, evidence := range map[int]report.Evidence{1: report.TooFew, 3: report.TooFew, 4: report.Changed, 9: report.Changed} {
		var before, after []float64
		for i := range n {
			before, after = append(before, float64(1+i)), append(after, float64(100+i))
		}
		require.Equal(t, evidence, change(t, side(before...), side(after...)).Evidence, n)
	}
	uneven := change(t, side(1), side(10, 11, 12, 13, 14))
	require.Equal(t, report.TooFew, uneven.Evidence, "one run may be anywhere by chance")
	_, text := compare(t, side(1), side(10, 11, 12, 13, 14))
	require.Contains(t, text, "note       1 run before and 5 runs after cannot tell a change from noise: compare 4 or more of each\n")
	require.Contains(t, text, "\nThe figures are medians.")
	require.Contains(t, text, "\n? are too few runs")
	require.NotContains(t, text, "\n~ is")
	_, text = compare(t, side(10, 11, 12, 13, 14), side(1))
	require.Contains(t, text, "note       5 runs before and 1 run after cannot tell a change from noise: compare 4 or more of each\n")
	require.Contains(t, text, "\nThe figures are medians.")
	require.Positive(t, uneven.P)
	for _, sides := range [][2][]*report.Report{{side(1), side(2, 3)}, {side(2, 3), side(1)}} {
		_, text = compare(t, sides[0], sides[1])
		require.Contains(t, text, "medians")
	}
	require.NotContains(t, compared(t, side(1)[0], side(2)[0]), "medians", "one run has none")
}

func TestCompare_OfOutliersAndZeros(t *testing.T) {
	c := change(t, side(1, 1, 1, 1, 1, 90), side(1, 1, 1, 1, 1, 1))
	require.Equal(t, report.Noise, c.Evidence, "one outlier is not a change")
	require.InDelta(t, 1, c.Before.Median, 1e-9)
	_, text := compare(t, side(0, 0, 0, 0, 2), side(0, 0, 0, 0, 0))
	require.Contains(t, text, "p99                    0s to 2s             0s                    ~  p=1.000\n")
}

func TestCompare_WarnsOfWhatCannotBeCompared(t *testing.T) {
	before, after := sample(), sample()
	after.Scenario = "calm"
	after.Plan, after.Build.CPUs, after.Build.Go, after.Interrupted = "fedcba9876543210", 8, "go9", true
	after.Broken = nil
	after.Disturbance.Others = 0.06
	delete(after.Metrics, "heap")
	text := compared(t, before, after)
	for _, note := range []string{
		"the scenarios differ: storm before, calm after",
		"the plans differ: 0123456789ab before, fedcba987654 after",
		"the machines differ: a CPU, 2 of 2 CPUs, linux/amd64 before, a CPU, 2 of 8 CPUs, linux/amd64 after",
		"Go differs: go1.26 before, go9 after",
		"some were interrupted: complete before, interrupted after",
		"only some runs have, so that it is not compared: heap",
		"invariants are broken in 1 of 1 run before, in 0 of 1 run after",
		"the machine was disturbed in 0 of 1 run before, in 1 of 1 run after",
	} {
		require.Contains(t, text, "note       "+note+"\n")
	}
	require.Contains(t, text, "nothing changed")
	before.Broken = nil
	require.Equal(t, 1, strings.Count(compared(t, before, before), "\nnote "), "that it is one run of each side")
	_, err := report.Compare(nil, side(1))
	require.ErrorIs(t, err, report.ErrNoRuns)
	_, err = report.Compare(side(1), nil)
	require.ErrorIs(t, err, report.ErrNoRuns)
}

// The same seeds on both sides can be compared; sides that mix programs cannot.
func TestCompare_LooksAtSidesAsAWhole(t *testing.T) {
	before, after := side(1, 2, 3, 4, 5), side(1, 2, 3, 4, 5)
	for i := range before {
		before[i].Plan, after[4-i].Plan = fmt.Sprint(i), fmt.Sprint(i)
		after[i].Assertions[1].Holds = i < 2
		after[i].Assertions = append(after[i].Assertions, report.Assertion{Text: "lag < 5"})
	}
	before[0].Assertions = before[0].Assertions[:1]
	_, text := compare(t, before, after)
	require.NotContains(t, text, "plans differ")
	require.Contains(t, text, "assertion  p99 < 50ms held in 4 of 4 runs, and now in 2 of 5\n")
	require.Equal(t, 1, strings.Count(text, "\nassertion "), "no other has changed")
	_, text = compare(t, before[1:2], after[:2])
	require.NotContains(t, text, "\nassertion ", "it holds as before")
	_, text = compare(t, before[1:2], after[1:3])
	require.Contains(t, text, "assertion  p99 < 50ms held in 1 of 1 run, and now in 1 of 2\n")
	_, text = compare(t, before[1:3], after[4:])
	require.Contains(t, text, "assertion  p99 < 50ms held in 2 of 2 runs, and now in 0 of 1\n")
	_, text = compare(t, before[:2], after[4:])
	require.Contains(t, text, "assertion  p99 < 50ms no longer holds\n")
	require.NotContains(t, text, "several revisions")
	after[0].Plan, after[3].Build.Revision = "other", "def"
	_, text = compare(t, before, after)
	require.Contains(t, text, "the plans differ: 0 and 1 and 2 and 2 more before, 0 and 1 and 2 and 2 more after")
	require.Contains(t, text, "the runs of a side are of several revisions: abc and def")
	_, text = compare(t, before[:3], after[1:])
	require.Contains(t, text, "the plans differ: 0 and 1 and 2 before, 0 and 1 and 2 and 1 more after")
}

func TestCompare_NoticesARunThatIsThereTwice(t *testing.T) {
	before, after := side(1, 2), side(3)
	before[1].Started, after[0].Started = time.Unix(7, 0), time.Unix(7, 0)
	_, text := compare(t, before, after)
	require.Contains(t, text, "note       the run of 1970-01-01 00:00:07 UTC is there more than once\n")
	require.Equal(t, 1, strings.Count(text, "more than once"), "those without a time may be others")
	after[0].Plan = "other"
	before[0].Started = time.Unix(8, 0)
	_, text = compare(t, before, after)
	require.NotContains(t, text, "more than once")
}
