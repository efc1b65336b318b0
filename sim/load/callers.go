package load

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/pace"
)

// callers is a group of writers, readers or caches, and what they have done.
type callers struct {
	run   *run
	kind  string // "writers", "readers" or "caches"
	name  string
	count int
	// done counts the calls that succeeded, failed those that did not, missed
	// those that were due but not made in time.
	done, failed, missed atomic.Uint64
	latency              *latency.Recorder
}

func newCallers(r *run, kind, name string, count int) *callers {
	g := &callers{run: r, kind: kind, name: name, count: count, latency: latency.NewRecorder()}
	r.callers = append(r.callers, g)
	return g
}

// keep makes each call when it is due, until end, with the moment at which it was
// due. Those that are due by then, but not made, it counts: left out, a load that
// the engine holds up would look better than it was.
func (g *callers) keep(ctx context.Context, clock *pace.Schedule, start, end time.Duration, call func(ctx context.Context, due int64) error) {
	watch := g.run.watch
	for due := start + clock.Due(); due < end; due = start + clock.Due() {
		if watch.elapsed() > end {
			g.missed.Add(1 + clock.Left(end-start))
			return
		}
		at := watch.at(due)
		if watch.until(ctx, at) != nil {
			return
		}
		g.made(ctx, at, call(ctx, at))
	}
}

// made notes how a call went that was due at a moment. Calls that fail since the
// run is being stopped are as if not made.
func (g *callers) made(ctx context.Context, due int64, err error) {
	switch {
	case err == nil:
		g.latency.Record(int(g.done.Add(1)), g.run.watch.now()-due)
	case !isInterrupt(ctx, err):
		g.failed.Add(1)
		g.run.failure(g.name, err)
	}
}

// total sums a count over the groups of one kind.
func (r *run) total(kind string, count func(*callers) uint64) (n uint64) {
	for _, g := range r.callers {
		if g.kind == kind {
			n += count(g)
		}
	}
	return n
}

func (g *callers) successes() uint64 { return g.done.Load() }
func (g *callers) failures() uint64  { return g.failed.Load() }
func (g *callers) omissions() uint64 { return g.missed.Load() }

// groupCallers makes the groups of writers and readers.
func (r *run) groupCallers() {
	for _, w := range r.plan.Writers {
		newCallers(r, "writers", w.Name, w.Count)
	}
	for _, rd := range r.plan.Readers {
		newCallers(r, "readers", rd.Name, rd.Count)
	}
}

// callersOf returns the group of writers or readers of that name.
func (r *run) callersOf(kind, name string) *callers {
	for _, g := range r.callers {
		if g.kind == kind && g.name == name {
			return g
		}
	}
	return nil
}
