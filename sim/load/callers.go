package load

import (
	"context"
	"sync/atomic"

	"github.com/watchmill/watchmill/sim/load/internal/latency"
)

// callers is a group of writers, readers or caches, and what they have done.
type callers struct {
	run   *run
	kind  string // "writers", "readers" or "caches"
	name  string
	count int
	// done counts the calls that succeeded, failed those that did not.
	done, failed atomic.Uint64
	latency      *latency.Recorder
}

func newCallers(r *run, kind, name string, count int) *callers {
	g := &callers{run: r, kind: kind, name: name, count: count, latency: latency.NewRecorder()}
	r.callers = append(r.callers, g)
	return g
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
