package report

import (
	"errors"
	"slices"

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
