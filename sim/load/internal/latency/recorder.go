package latency

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/watchmill/watchmill/sim/report"
)

const (
	// longest is the longest latency that is recorded as such.
	longest = time.Hour
	// digits is the precision: one percent, so that histograms stay small.
	digits = 2
	// shards is how many histograms a recorder has, for concurrent recording.
	shards = 8
)

// NewHistogram returns an empty histogram, of microseconds.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest/time.Microsecond), digits)
}

// Recorder collects one kind of latency. Record and RecordAll can be called from
// many goroutines; Drain and Total belong to one.
type Recorder struct {
	shards [shards]struct {
		mu   sync.Mutex
		hist *hdrhistogram.Histogram
	}
	total *hdrhistogram.Histogram
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder {
	r := &Recorder{total: NewHistogram()}
	for i := range r.shards {
		r.shards[i].hist = NewHistogram()
	}
	return r
}

// Record records one latency, in nanoseconds. by numbers the recording goroutine, so
// that concurrent recorders use different histograms.
func (r *Recorder) Record(by int, nanos int64) {
	s := &r.shards[by%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	record(s.hist, nanos)
}

// RecordAll records several latencies.
func (r *Recorder) RecordAll(by int, nanos []int64) {
	s := &r.shards[by%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nanos {
		record(s.hist, n)
	}
}

func record(h *hdrhistogram.Histogram, nanos int64) {
	// Both ends are cut off, so the value is in range.
	_ = h.RecordValue(min(max(0, nanos), int64(longest)) / int64(time.Microsecond))
}

// Drain adds what was recorded since the last call to the total and to the others.
func (r *Recorder) Drain(others ...*hdrhistogram.Histogram) {
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

// Total returns all that has been drained.
func (r *Recorder) Total() *hdrhistogram.Histogram { return r.total }

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

// Stage summarizes a histogram.
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

// curve returns the latency at percentiles that approach 100, ten for each factor of
// ten of the distance, as far as there are events.
func curve(h *hdrhistogram.Histogram) (points []report.Point) {
	for left := 1.0; left*float64(h.TotalCount()) >= 1; left /= math.Pow(10, 0.1) {
		p := 100 * (1 - left)
		points = append(points, report.Point{Percentile: p, Seconds: At(h, p)})
	}
	return append(points, report.Point{Percentile: 100, Seconds: Max(h)})
}
