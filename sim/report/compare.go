package report

import (
	"errors"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/watchmill/watchmill/sim/scenario"
)

// ErrNoRuns: one side of a comparison has no run.
var ErrNoRuns = errors.New("no run to compare")

// Comparison is how the runs of one side differ from those of another. Make one
// with [Compare].
type Comparison struct {
	// Before and After are the runs.
	Before, After []*Report
	// Notes are what makes the figures hard to compare: other plans, another
	// machine, a run that was interrupted, too few runs.
	Notes []string
	// Changes are the metrics that do not have one value in all runs, in the order
	// of scenario.Metrics.
	Changes []Change
	// Verdicts are assertions that do not hold as often after as before.
	Verdicts []string
}

// Change is a metric that does not have the same value in all runs.
type Change struct {
	Metric        scenario.Metric
	Before, After Spread
	// P is how probable it is, from 0 to 1, that chance alone sets the sides as
	// far apart; Evidence is what follows from it.
	P        float64
	Evidence Evidence
}

// Ratio returns by how much the median has changed: 0.1 is ten percent more. It
// is infinite from zero, and not a number from zero to zero.
func (c Change) Ratio() float64 { return (c.After.Median - c.Before.Median) / c.Before.Median }

// Compare returns how the runs after differ from those before, and whether by
// more than noise. One run of each side shows what differs, but cannot tell why;
// it takes four of each to tell, and six for intervals of confidence.
//
// Errors: [ErrNoRuns].
func Compare(before, after []*Report) (*Comparison, error) {
	if len(before) == 0 || len(after) == 0 {
		return nil, ErrNoRuns
	}
	c := &Comparison{Before: before, After: after}
	c.notes()
	c.missing()
	for _, m := range scenario.Metrics {
		if measuredBy(before, m) && measuredBy(after, m) {
			c.metric(m)
		}
	}
	c.verdicts()
	return c, nil
}

// metric compares one metric, which all runs have.
func (c *Comparison) metric(m scenario.Metric) {
	b, a := measured(values(c.Before, m)), measured(values(c.After, m))
	if first := b.Values[0]; slices.Max(b.Values) == first && slices.Max(a.Values) == first && a.Values[0] == first {
		return
	}
	ch := Change{Metric: m, Before: spread(b), After: spread(a)}
	ch.P, ch.Evidence = weigh(b, a)
	c.Changes = append(c.Changes, ch)
}

func values(runs []*Report, m scenario.Metric) (values []float64) {
	for _, r := range runs {
		values = append(values, r.Metrics[m.Name])
	}
	return values
}

// measuredBy reports whether all runs have the metric: a program that is older
// than the metric has not measured zero.
func measuredBy(runs []*Report, m scenario.Metric) bool {
	return count(runs, func(r *Report) bool { return has(r, m) }) == len(runs)
}

func has(r *Report, m scenario.Metric) bool {
	_, ok := r.Metrics[m.Name]
	return ok
}

// confidence is that of the intervals around medians: 0.95 is 95 %.
const confidence = 0.95

// Evidence is what the runs of two sides say about whether a metric differs.
type Evidence string

// What the runs can say.
const (
	// Changed: the sides differ by more than noise.
	Changed Evidence = "changed"
	// Noise: chance alone sets two sides this far apart often enough.
	Noise Evidence = "noise"
	// TooFew: with so few runs, not even sides without any overlap would tell.
	TooFew Evidence = "too few runs"
)

// Spread is where the values of a metric lie on one side, in the metric's unit.
type Spread struct {
	// Values are one of each run, the least first.
	Values []float64
	// Median is their middle. Low and High bound it with a confidence of 95 %,
	// which takes six runs; of fewer, they are the least and the greatest value.
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

// weigh compares the values of two sides, by the Mann-Whitney U test: nothing is
// assumed about how latencies are distributed, since no common assumption holds.
func weigh(before, after *benchmath.Sample) (p float64, e Evidence) {
	c := benchmath.AssumeNothing.Compare(before, after)
	switch {
	case c.P < c.Alpha:
		return c.P, Changed
	case !canTell(c.N1, c.N2):
		return c.P, TooFew
	}
	return c.P, Noise
}

// canTell reports whether that many runs of each side can show a difference: it
// tries two sides that do not overlap at all.
func canTell(before, after int) bool {
	c := benchmath.AssumeNothing.Compare(upFrom(0, before), upFrom(before, after))
	return c.P < c.Alpha
}

// upFrom returns a sample of n different values from first on.
func upFrom(first, n int) *benchmath.Sample {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(first + i)
	}
	return measured(values)
}

func measured(values []float64) *benchmath.Sample {
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// enough is the least number of runs that can tell, if each side has as many.
func enough() int {
	n := 1
	for !canTell(n, n) {
		n++
	}
	return n
}
