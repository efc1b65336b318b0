package report

import (
	"errors"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/watchmill/watchmill/sim/scenario"
)

// ErrNoRuns is the error of a comparison with a side that has no runs.
var ErrNoRuns = errors.New("no run to compare")

// Comparison has the differences between the runs of two sides. Make one with
// [Compare].
type Comparison struct {
	// Before and After are the runs.
	Before, After []*Report
	// Notes say what makes the figures hard to compare: different plans or machines,
	// interrupted or disturbed runs, too few runs.
	Notes []string
	// Changes are the metrics that do not have the same value in all runs, in the
	// order of scenario.Metrics.
	Changes []Change
	// Verdicts describe the assertions that hold more often or less often than before.
	Verdicts []string
}

// Change is a metric that does not have the same value in all runs.
type Change struct {
	Metric        scenario.Metric
	Before, After Spread
	// P is the probability, from 0 to 1, of at least such a difference by chance
	// alone. Evidence is the conclusion.
	P        float64
	Evidence Evidence
}

// Ratio returns the relative change of the median: 0.1 is ten percent more. It is
// infinite if the median was zero, and NaN if it was and still is.
func (c Change) Ratio() float64 { return (c.After.Median - c.Before.Median) / c.Before.Median }

// Compare returns the differences between the runs before and after, and whether they
// are more than noise. That takes at least four runs of each side, and confidence
// intervals take six; with fewer, the differences are listed without a conclusion.
//
// Errors: [ErrNoRuns].
func Compare(before, after []*Report) (*Comparison, error) {
	if len(before) == 0 || len(after) == 0 {
		return nil, ErrNoRuns
	}
	c := &Comparison{Before: before, After: after}
	c.noteDifferences()
	c.noteMissing()
	for _, m := range scenario.Metrics {
		if measuredBy(before, m) && measuredBy(after, m) {
			c.metric(m)
		}
	}
	c.verdicts()
	return c, nil
}

// metric compares one metric that all runs have.
func (c *Comparison) metric(m scenario.Metric) {
	b, a := measured(values(c.Before, m)), measured(values(c.After, m))
	if first := b.Values[0]; slices.Max(b.Values) == first && slices.Max(a.Values) == first && a.Values[0] == first {
		return
	}
	ch := Change{Metric: m, Before: spread(b), After: spread(a)}
	ch.P, ch.Evidence = compareSamples(b, a)
	c.Changes = append(c.Changes, ch)
}

func values(runs []*Report, m scenario.Metric) (values []float64) {
	for _, r := range runs {
		values = append(values, r.Metrics[m.Name])
	}
	return values
}

// measuredBy reports whether all runs have the metric. In a run that has not measured it, and of a
// program that is older than the metric, it is missing rather than zero.
func measuredBy(runs []*Report, m scenario.Metric) bool {
	return count(runs, func(r *Report) bool { return has(r, m) }) == len(runs)
}

func has(r *Report, m scenario.Metric) bool {
	_, ok := r.Metrics[m.Name]
	return ok
}

// confidence is the confidence level of the intervals around medians, from 0 to 1.
const confidence = 0.95

// Evidence is the conclusion about whether a metric differs between two sides.
type Evidence string

// The conclusions.
const (
	// Changed: the difference is more than noise.
	Changed Evidence = "changed"
	// Noise: such a difference is probable by chance alone.
	Noise Evidence = "noise"
	// TooFew: there are too few runs for any difference to be more than noise.
	TooFew Evidence = "too few runs"
)

// Spread has the values of a metric on one side, in the metric's unit.
type Spread struct {
	// Values has the value of each run, sorted.
	Values []float64
	// Low and High are the bounds of the 95 % confidence interval of the median or,
	// with fewer than six runs, the smallest and largest value.
	Median, Low, High float64
}

func spread(s *benchmath.Sample) Spread {
	sum := benchmath.AssumeNothing.Summary(s, confidence)
	low, high := sum.Lo, sum.Hi
	if math.IsInf(low, 0) || math.IsInf(high, 0) {
		low, high = s.Values[0], s.Values[len(s.Values)-1]
	}
	return Spread{Values: s.Values, Median: sum.Center, Low: low, High: high}
}

// compareSamples compares the values of two sides by the Mann-Whitney U test, which
// does not assume a distribution: latencies have none of the usual ones.
func compareSamples(before, after *benchmath.Sample) (p float64, e Evidence) {
	c := benchmath.AssumeNothing.Compare(before, after)
	switch {
	case c.P < c.Alpha:
		return c.P, Changed
	case !canTell(c.N1, c.N2):
		return c.P, TooFew
	}
	return c.P, Noise
}

// canTell reports whether these numbers of runs can show a difference at all. It compares
// two sides whose values do not overlap, which differ as clearly as any can.
func canTell(before, after int) bool {
	c := benchmath.AssumeNothing.Compare(consecutive(0, before), consecutive(before, after))
	return c.P < c.Alpha
}

// consecutive returns a sample of the n whole numbers from first on.
func consecutive(first, n int) *benchmath.Sample {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(first + i)
	}
	return measured(values)
}

func measured(values []float64) *benchmath.Sample {
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// runsNeeded returns the smallest number of runs of each side that can show a
// difference.
func runsNeeded() int {
	n := 1
	for !canTell(n, n) {
		n++
	}
	return n
}
