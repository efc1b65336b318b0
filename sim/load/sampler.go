package load

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/report"
)

// How often samples are taken: a hundred in the load, within bounds.
const (
	sampleMin = 20 * time.Millisecond
	sampleMax = 2 * time.Second
)

// sampler looks at everything now and then. What it holds belongs to it until it
// has stopped.
type sampler struct {
	run      *run
	every    time.Duration
	samples  []report.Sample
	overall  *hdrhistogram.Histogram // end to end, of consumers at full speed
	handed   *hdrhistogram.Histogram
	interval *hdrhistogram.Histogram
	// writes and delivered are what they were at the sample before, at.
	writes, delivered uint64
	at                time.Duration
}

func newSampler(r *run) *sampler {
	every := min(sampleMax, max(sampleMin, r.plan.Duration/100))
	return &sampler{run: r, every: every, overall: latency.NewHistogram(), handed: latency.NewHistogram(), interval: latency.NewHistogram()}
}

// sample takes samples until ctx is done, and then a last one.
func (s *sampler) sample(ctx context.Context) {
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.take()
		case <-ctx.Done():
			s.take()
			return
		}
	}
}

// take takes one sample. One that comes right after another is left out, as the
// last does: rates of a moment mean nothing.
func (s *sampler) take() {
	now := s.run.watch.elapsed()
	s.drain()
	if len(s.samples) == 0 || now-s.at >= s.every/2 {
		s.add(now)
	}
}

// drain gathers the latencies that were recorded since the last time.
func (s *sampler) drain() {
	for _, g := range s.run.groups {
		if g.spec.Consume.Slow() {
			g.latency.Drain()
			g.handed.Drain()
			continue
		}
		g.latency.Drain(s.overall, s.interval)
		g.handed.Drain(s.handed)
	}
}

func (s *sampler) add(now time.Duration) {
	writes, delivered := s.run.total("writers", (*callers).successes), s.run.delivered()
	span := max(now-s.at, time.Microsecond).Seconds()
	sample := report.Sample{
		At:        now.Seconds(),
		WriteRate: float64(writes-s.writes) / span, DeliveryRate: float64(delivered-s.delivered) / span,
		P50: latency.At(s.interval, 50), P99: latency.At(s.interval, 99), Max: latency.Max(s.interval),
		Heap: heap(), Goroutines: runtime.NumGoroutine(), CacheRevision: uint64(s.run.engine.Revision()),
	}
	sample.Lag, sample.Stalled, sample.Watches = s.run.standing()
	s.writes, s.delivered, s.at = writes, delivered, now
	s.samples = append(s.samples, sample)
	s.interval.Reset()
}

// standing asks each watch how it stands.
func (r *run) standing() (lag uint64, stalled, watches int) {
	for _, g := range r.groups {
		for _, w := range g.all {
			watch := w.watch.Load()
			if watch == nil {
				continue
			}
			watches++
			if watch.Stalled() {
				stalled++
			}
			behind := watch.Lag()
			raise(&w.lag, behind)
			lag = max(lag, behind)
		}
	}
	return lag, stalled, watches
}

// raise makes n the value if that is less. Samples and progress both do.
func raise(most *atomic.Uint64, n uint64) {
	for {
		old := most.Load()
		if old >= n || most.CompareAndSwap(old, n) {
			return
		}
	}
}

// delivered returns how many events consumers have been handed.
func (r *run) delivered() (n uint64) {
	for _, g := range r.groups {
		n += g.delivered()
	}
	return n
}

func (g *watchers) delivered() (n uint64) {
	for _, w := range g.all {
		n += w.delivered.Load()
	}
	return n
}

// heap returns the bytes that objects take, dead ones too until they are
// collected.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
