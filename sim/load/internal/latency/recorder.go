package latency

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/watchmill/watchmill/sim/report"
)

const (
	// longest is the highest latency that histograms represent; longer ones count as it.
	longest = time.Hour
	// digits is the number of significant digits: two are a precision of one percent and
	// keep histograms small.
	digits = 2
	// shards is how many histograms a recorder has, for concurrent recording.
	shards = 8
)

// NewHistogram returns an empty histogram, of microseconds.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest/time.Microsecond), digits)
}

// Recorder collects one kind of latency. Record and RecordAll are safe for concurrent use,
// also with Drain; Drain and Total must be called by one goroutine at a time.
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

// RecordAll records several latencies, as Record does.
func (r *Recorder) RecordAll(by int, nanos []int64) {
	s := &r.shards[by%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nanos {
		record(s.hist, n)
	}
}

func record(h *hdrhistogram.Histogram, nanos int64) {
	// The value is limited to the range of the histogram, so there is no error.
	_ = h.RecordValue(min(max(0, nanos), int64(longest)) / int64(time.Microsecond))
}

// Drain adds the latencies that were recorded since the last call to the total and to each
// of the other histograms.
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

// curve returns the latency at percentiles that approach 100: ten for each tenfold
// decrease of the distance to 100, as long as at least one event lies beyond.
func curve(h *hdrhistogram.Histogram) (points []report.Point) {
	for left := 1.0; left*float64(h.TotalCount()) >= 1; left /= math.Pow(10, 0.1) {
		p := 100 * (1 - left)
		points = append(points, report.Point{Percentile: p, Seconds: At(h, p)})
	}
	return append(points, report.Point{Percentile: 100, Seconds: Max(h)})
}
