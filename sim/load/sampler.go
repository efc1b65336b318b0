package load

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/machine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/report"
)

// Bounds of the time between two samples, which is a hundredth of the load's.
const (
	sampleMin = 20 * time.Millisecond
	sampleMax = 2 * time.Second
)

// sampler samples rates, latencies and the state of the machine periodically. Its fields
// belong to its goroutine until that has ended.
type sampler struct {
	run      *run
	every    time.Duration
	samples  []report.Sample
	overall  *hdrhistogram.Histogram // end to end, of consumers that are not slow
	handed   *hdrhistogram.Histogram
	interval *hdrhistogram.Histogram
	// writes and delivered are the totals at the previous sample, which was taken at the
	// time at.
	writes, delivered uint64
	at                time.Duration
	processors        processors
	others            float64 // share of the processors that other programs had, from the first sample to the last
	timers            machine.Timers
}

func newSampler(r *run) *sampler {
	every := min(sampleMax, max(sampleMin, r.plan.Duration/100))
	return &sampler{run: r, every: every, overall: latency.NewHistogram(), handed: latency.NewHistogram(), interval: latency.NewHistogram()}
}

// sample takes samples until ctx is done, and then one more.
func (s *sampler) sample(ctx context.Context) {
	s.processors = watchProcessors()
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.take()
		case <-ctx.Done():
			s.take()
			s.others = s.processors.all.Share()
			return
		}
	}
}

// take takes one sample, unless the previous one is too recent for a rate.
func (s *sampler) take() {
	now := s.run.stopwatch.Elapsed()
	s.drain()
	if len(s.samples) == 0 || now-s.at >= s.every/2 {
		s.add(now)
	}
}

// drain collects the latencies that were recorded since the last call.
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
		Others: s.processors.othersAt(now), TimerLate: s.timers.Late().Seconds(),
	}
	sample.Lag, sample.Stalled, sample.Watches = s.run.standing()
	s.writes, s.delivered, s.at = writes, delivered, now
	s.samples = append(s.samples, sample)
	s.interval.Reset()
}

// processors measures the share of the processors that other programs and machines have,
// over stretches that are long enough for that.
type processors struct {
	all, stretch *machine.Others
	since        time.Duration // when the stretch began
	share        float64       // in the previous stretch
}

func watchProcessors() processors {
	return processors{all: machine.WatchOthers(), stretch: machine.WatchOthers()}
}

// shortestStretch is the shortest time over which a share can be measured.
const shortestStretch = 250 * time.Millisecond

// othersAt returns the share that other programs and machines had in the last whole stretch.
func (p *processors) othersAt(now time.Duration) float64 {
	if now-p.since >= shortestStretch {
		p.share, p.since = p.stretch.Share(), now
	}
	return p.share
}

// standing returns the highest lag of the watches that run, and how many are stalled. A watcher may
// have one that has ended, and that it has not read to its end.
func (r *run) standing() (lag uint64, stalled, watches int) {
	for w := range r.everyWatcher() {
		watch := w.watch.Load()
		if watch == nil || watch.Err() != nil {
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
	return lag, stalled, watches
}

// raise sets the value to n if it is lower. The sampler and the reporter of progress call
// it concurrently.
func raise(most *atomic.Uint64, n uint64) {
	for {
		old := most.Load()
		if old >= n || most.CompareAndSwap(old, n) {
			return
		}
	}
}

// delivered returns how many events the consumers have received.
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

// heap returns the bytes of all objects in the heap, including unreachable ones that are
// not collected yet.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// stages measures the stages between a write and its event that writers and consumers
// cannot measure.
type stages struct {
	run             *run
	cache, dispatch *latency.Recorder
}

func newStages(r *run) *stages {
	return &stages{run: r, cache: latency.NewRecorder(), dispatch: latency.NewRecorder()}
}

// probe measures until ctx is done.
func (s *stages) probe(ctx context.Context) {
	// This watch has no backlog, since its handler does nothing else. If it ends
	// nevertheless, the stage has fewer events, which its count shows.
	watch, err := s.run.engine.Handle(ctx, engine.WatchOptions{OnPool: true, Name: "dispatch latency"}, s.dispatched)
	switch {
	case err == nil:
		defer watch.Stop()
	case ctx.Err() == nil:
		s.run.failure("dispatch", err)
	}
	s.probeCache(ctx)
}

// dispatched measures when the handler of the probe's watch is called. It runs on the
// engine's workers.
func (s *stages) dispatched(ev engine.Event[content.Item]) {
	if ev.Object != nil && ev.Type != engine.Deleted {
		s.dispatch.Record(0, s.run.stopwatch.Now()-ev.Object.Value.Stored)
	}
}

// probeCache measures, for one write at a time, when the cache has it.
func (s *stages) probeCache(ctx context.Context) {
	for {
		select {
		case written := <-s.run.storage.Writes():
			// It gives up after a time, and the cache is later than that.
			for s.run.engine.WaitForRevision(ctx, written.Revision) != nil && pace.Sleep(ctx, 10*time.Millisecond) == nil {
			}
			s.cache.Record(0, s.run.stopwatch.Now()-written.Stored)
		case <-ctx.Done():
			return
		}
	}
}
