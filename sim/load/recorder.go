package load

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/watchmill/watchmill/sim/report"
)

const (
	// longest is the longest latency that is told from longer ones.
	longest = time.Hour
	// digits is how exactly: to one percent, so that histograms stay small.
	digits = 2
	// shards is how many histograms share the recording of one thing.
	shards = 8
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest/time.Microsecond), digits)
}

// recorder collects one kind of latency, from many goroutines.
type recorder struct {
	shards [shards]struct {
		mu   sync.Mutex
		hist *hdrhistogram.Histogram
	}
	// total is what has been drained. It belongs to the sampler.
	total *hdrhistogram.Histogram
}

func newRecorder() *recorder {
	r := &recorder{total: newHistogram()}
	for i := range r.shards {
		r.shards[i].hist = newHistogram()
	}
	return r
}

// record notes one latency, in nanoseconds. By is who does so: a number.
func (r *recorder) record(by int, nanos int64) {
	s := &r.shards[by%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	note(s.hist, nanos)
}

// recordAll notes many.
func (r *recorder) recordAll(by int, nanos []int64) {
	s := &r.shards[by%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nanos {
		note(s.hist, n)
	}
}

func note(h *hdrhistogram.Histogram, nanos int64) {
	// Out of range is impossible: both ends are cut off.
	_ = h.RecordValue(min(max(0, nanos), int64(longest)) / int64(time.Microsecond))
}

// drain moves what was recorded since the last time to the total, and adds it to
// the others.
func (r *recorder) drain(others ...*hdrhistogram.Histogram) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		if s.hist.TotalCount() > 0 {
			r.total.Merge(s.hist)
			for _, h := range others {
				h.Merge(s.hist)
			}
			s.hist.Reset()
		}
		s.mu.Unlock()
	}
}

// seconds returns the latency at a percentile, from 0 to 100.
func seconds(h *hdrhistogram.Histogram, percentile float64) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return float64(h.ValueAtPercentile(percentile)) / 1e6
}

// longestOf returns the longest latency.
func longestOf(h *hdrhistogram.Histogram) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return float64(h.Max()) / 1e6
}

// stage sums a histogram up.
func stage(name, about string, h *hdrhistogram.Histogram) report.Stage {
	s := report.Stage{
		Name: name, About: about, Count: h.TotalCount(),
		P50: seconds(h, 50), P90: seconds(h, 90), P99: seconds(h, 99), P999: seconds(h, 99.9), Max: longestOf(h),
	}
	if s.Count == 0 {
		return s
	}
	s.Mean = h.Mean() / 1e6
	s.Curve = curve(h)
	return s
}

// curve returns the latency at percentiles that halve what is left, ten steps to
// each tenfold, as far as there are events.
func curve(h *hdrhistogram.Histogram) (points []report.Point) {
	for left := 1.0; left*float64(h.TotalCount()) >= 1; left /= math.Pow(10, 0.1) {
		p := 100 * (1 - left)
		points = append(points, report.Point{Percentile: p, Seconds: seconds(h, p)})
	}
	return append(points, report.Point{Percentile: 100, Seconds: longestOf(h)})
}
