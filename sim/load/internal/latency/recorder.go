package latency

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// longest is the longest latency that is told from longer ones.
	longest = time.Hour
	// digits is how exactly: to one percent, so that histograms stay small.
	digits = 2
	// shards is how many histograms share the recording of one thing.
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
	note(s.hist, nanos)
}

// RecordAll notes many.
func (r *Recorder) RecordAll(by int, nanos []int64) {
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

// Drain moves what was recorded since the last time to the total, and adds it to
// the others.
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

// Total returns what has been drained, all together.
func (r *Recorder) Total() *hdrhistogram.Histogram { return r.total }
