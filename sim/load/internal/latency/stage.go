package latency

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/watchmill/watchmill/sim/report"
)

// At returns the latency at a percentile, from 0 to 100, in seconds; zero if
// nothing was recorded.
func At(h *hdrhistogram.Histogram, percentile float64) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return float64(h.ValueAtPercentile(percentile)) / 1e6
}

// Max returns the longest latency, in seconds; zero if nothing was recorded.
func Max(h *hdrhistogram.Histogram) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return float64(h.Max()) / 1e6
}

// Stage sums a histogram up.
func Stage(name, about string, h *hdrhistogram.Histogram) report.Stage {
	s := report.Stage{
		Name: name, About: about, Count: h.TotalCount(),
		P50: At(h, 50), P90: At(h, 90), P99: At(h, 99), P999: At(h, 99.9), Max: Max(h),
	}
	if s.Count == 0 {
		return s
	}
	s.Mean = h.Mean() / 1e6
	s.Curve = curve(h)
	return s
}

// curve returns the latency at percentiles ever closer to the end, ten steps to
// each tenfold, as far as there are events.
func curve(h *hdrhistogram.Histogram) (points []report.Point) {
	for left := 1.0; left*float64(h.TotalCount()) >= 1; left /= math.Pow(10, 0.1) {
		p := 100 * (1 - left)
		points = append(points, report.Point{Percentile: p, Seconds: At(h, p)})
	}
	return append(points, report.Point{Percentile: 100, Seconds: Max(h)})
}
