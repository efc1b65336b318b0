package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/load/internal/sample"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// callers is a group of writers, readers or caches, with counts of their calls.
type callers struct {
	run   *run
	kind  string // "writers", "readers" or "caches"
	name  string
	count int
	// done counts the calls that succeeded, failed those that failed, and missed
	// those that were due but not made before the end.
	done, failed, missed atomic.Uint64
	latency              *latency.Recorder
	// broken is the first invariant that a call of a writer or a reader has broken; nil if none
	// has.
	broken atomic.Pointer[judge.Failure]
	// sample has lists that readers made.
	sample *sample.Lists
}

func newCallers(r *run, kind, name string, count int) *callers {
	g := &callers{run: r, kind: kind, name: name, count: count, latency: latency.NewRecorder(), sample: sample.New(r.plan.Seed)}
	r.callers = append(r.callers, g)
	return g
}

// callOnSchedule makes each call when it is due, until end, and passes it the time at which
// it was due. It counts the calls that were due but not made: without that count, a load
// that the engine delays would look better than it was.
func (g *callers) callOnSchedule(ctx context.Context, clock *pace.Schedule, start, end time.Duration, call func(ctx context.Context, due int64) error) {
	g.onSchedule(ctx, clock, start, end, func(ctx context.Context, due int64) { g.made(ctx, due, call(ctx, due)) })
}

// onSchedule is callOnSchedule of calls that are given to made by themselves.
func (g *callers) onSchedule(ctx context.Context, clock *pace.Schedule, start, end time.Duration, call func(ctx context.Context, due int64)) {
	for due := clock.Due(); due < end-start; due = clock.Due() {
		if g.run.stopwatch.Elapsed() > end {
			g.missed.Add(1 + clock.Left(end-start))
			return
		}
		at := g.run.stopwatch.At(start + due)
		if g.run.stopwatch.Until(ctx, at) != nil {
			return
		}
		call(ctx, at)
	}
}

// made records the result of a call that was due at a time. Calls that fail because
// the run is being stopped do not count.
func (g *callers) made(ctx context.Context, due int64, err error) {
	switch {
	case err == nil:
		g.latency.Record(int(g.done.Add(1)), g.run.stopwatch.Now()-due)
	case ctx.Err() == nil && !errors.Is(err, engine.ErrEngineClosed):
		g.failed.Add(1)
		g.run.failure(g.name, err)
	}
}

// breaks records err, if it is a broken invariant and the first of the group.
func (g *callers) breaks(err error) {
	if failure, ok := errors.AsType[*judge.Failure](err); ok {
		g.broken.CompareAndSwap(nil, failure)
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

// reader is one of a group of readers.
type reader struct {
	run   *run
	group *callers
	spec  *scenario.Reader
	rand  *rand.Rand
	clock *pace.Schedule
	// next is the number of its next read among those of the group, which fills in the
	// templates.
	next int
}

func newReader(r *run, g *callers, spec *scenario.Reader, part, number int) *reader {
	random := rand.New(rand.NewPCG(r.plan.Seed, uint64(number)+1_000_000))
	share := float64(part) / float64(spec.Count)
	return &reader{
		run: r, group: g, spec: spec, rand: random, next: part,
		clock: pace.NewSchedule(scenario.Steady, spec.Rate/float64(spec.Count), 0, share, random),
	}
}

// read makes reads on schedule, until the load is over. It judges each once its latency is
// measured; a read that is due meanwhile is late.
func (rd *reader) read(ctx context.Context) {
	rd.group.onSchedule(ctx, rd.clock, 0, rd.run.plan.Duration, func(ctx context.Context, due int64) {
		check, err := rd.readOne(ctx)
		rd.group.made(ctx, due, err)
		check()
	})
}
