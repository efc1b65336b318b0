package report

import (
	"math"

	"golang.org/x/perf/benchmath"
)

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
