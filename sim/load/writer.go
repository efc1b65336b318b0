package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
)

// writer is one of a group of writers. It has a share of the objects to itself, so
// that it knows which keys exist.
type writer struct {
	run   *run
	group *callers
	spec  *scenario.Writer
	maker *content.Maker
	clock *pace.Schedule
	zipf  *rand.Zipf
	// live are the numbers of the writer's existing objects, and next is that of its next
	// new one. It has every stride'th number.
	live         []int
	next, stride int
}

// writers makes all writers. Those that store objects of the plan share these.
func (r *run) writers() (all []*writer) {
	var storing []*writer
	for i := range r.plan.Writers {
		spec := &r.plan.Writers[i]
		g := r.callersOf("writers", spec.Name)
		for part := range spec.Count {
			w := newWriter(r, g, spec, part, len(all))
			all = append(all, w)
			if spec.Trace == "" && spec.Mix.Create+spec.Mix.Update+spec.Mix.Delete > 0 {
				storing = append(storing, w)
			}
		}
	}
	for i, w := range storing {
		w.own(i, len(storing))
	}
	return all
}

// newWriter returns a writer without objects, with its index among all writers, number, and its
// index in its group, part.
func newWriter(r *run, g *callers, spec *scenario.Writer, part, number int) *writer {
	w := &writer{run: r, group: g, spec: spec, maker: content.NewMaker(&r.plan.Objects, r.plan.Seed, uint64(number)+100)}
	if spec.Trace == "" {
		w.clock = schedule(spec, part, w.maker.Rand)
	}
	return w
}

// own gives the writer every stride'th number, from first on.
func (w *writer) own(first, stride int) {
	w.stride = stride
	for w.next = first; w.next < w.run.plan.Objects.Count; w.next += stride {
		w.live = append(w.live, w.next)
	}
	if w.spec.Hot > 0 {
		w.zipf = rand.NewZipf(w.maker.Rand, w.spec.Hot, 1, uint64(max(1, len(w.live))-1))
	}
}

// schedule returns when the part'th writer of a group writes. Steady writers take
// turns; writers of bursts write at the same time, each its part of every burst.
func schedule(spec *scenario.Writer, part int, random *rand.Rand) *pace.Schedule {
	if spec.Shape == scenario.Bursts {
		own := (spec.Burst + spec.Count - 1 - part) / spec.Count
		return pace.NewSchedule(spec.Shape, spec.Rate*float64(own)/float64(spec.Burst), own, 0, random)
	}
	turn := float64(part) / float64(spec.Count)
	return pace.NewSchedule(spec.Shape, spec.Rate/float64(spec.Count), 0, turn, random)
}

// write makes writes on schedule, until the group's time is over.
func (w *writer) write(ctx context.Context) {
	if w.spec.Trace != "" {
		w.replay(ctx)
		return
	}
	w.group.callOnSchedule(ctx, w.clock, w.spec.Start, w.spec.Stop, w.writeOne)
}

// writeOne makes a random write.
func (w *writer) writeOne(ctx context.Context, due int64) error {
	mix := &w.spec.Mix
	x := w.maker.Rand.Float64() * mix.Total()
	switch {
	case x < mix.Emit:
		return w.emit(ctx, due)
	case x < mix.Emit+mix.Create || len(w.live) == 0:
		return w.create(ctx, due)
	case x < mix.Emit+mix.Create+mix.Update:
		return w.update(ctx, due, w.live[w.pick()])
	}
	return w.delete(ctx, w.pick())
}

// pick draws one of the existing objects and returns its index in live.
func (w *writer) pick() int {
	if w.zipf != nil {
		return int(w.zipf.Uint64() % uint64(len(w.live)))
	}
	return w.maker.Rand.IntN(len(w.live))
}

func (w *writer) emit(ctx context.Context, due int64) error {
	it := w.maker.Object(w.maker.Rand.IntN(1000)) // any will do, since it is not stored
	it.Due = due
	newest := w.newest()
	rev, err := w.run.engine.Emit(ctx, it)
	if err == nil {
		w.checkStored(it.Key, rev, newest)
	}
	return err
}

func (w *writer) create(ctx context.Context, due int64) error {
	it := w.maker.Object(w.next)
	it.Due = due
	newest := w.newest()
	o, err := w.run.engine.Create(ctx, it)
	if err != nil {
		return err
	}
	w.checkStored(o.Key, o.Revision, newest)
	w.live = append(w.live, w.next)
	w.next += w.stride
	return nil
}

func (w *writer) update(ctx context.Context, due int64, n int) error {
	var moved *content.Attributes
	if w.spec.Move > 0 && w.maker.Rand.Float64() < w.spec.Move {
		moved = w.maker.Attributes()
	}
	payload := w.maker.Payload()
	change := func(it content.Item) (content.Item, error) {
		it.Due, it.Payload = due, payload
		if moved != nil {
			it.Attrs = moved
		}
		return it, nil
	}
	newest := w.newest()
	o, err := w.run.engine.Update(ctx, w.run.plan.Objects.Key(n), change, engine.UpdateOptions{})
	if err == nil {
		w.checkStored(o.Key, o.Revision, newest)
	}
	return err
}

// newest returns the revision of the write that was recorded last; any later call makes a higher one.
func (w *writer) newest() engine.Revision {
	e, _ := w.run.ledger.Newest()
	return e.Revision
}

// checkStored checks that a write returned a revision of its own, above the newest before it. No two
// writes are equal, so it returned another only if it has stored nothing.
func (w *writer) checkStored(key string, rev, newest engine.Revision) {
	if rev <= newest {
		w.lost(key, rev)
	}
}

// lost records that a write has stored nothing, and returned that revision.
func (w *writer) lost(key string, rev engine.Revision) {
	w.group.broken.CompareAndSwap(nil, judge.Failed(judge.Acknowledged, w.spec.Name,
		"a write of %q was answered with an object that it has not stored, of revision %d", key, rev))
}

func (w *writer) delete(ctx context.Context, at int) error {
	if _, err := w.remove(ctx, w.run.plan.Objects.Key(w.live[at])); err != nil {
		return err
	}
	last := len(w.live) - 1
	w.live[at] = w.live[last]
	w.live = w.live[:last]
	return nil
}

// remove deletes an object.
func (w *writer) remove(ctx context.Context, key string) (*engine.Object[content.Item], error) {
	newest := w.newest()
	gone, err := w.run.engine.Delete(ctx, key, engine.DeleteOptions{})
	if err == nil {
		w.checkStored(key, gone.Revision, newest)
	}
	return gone, err
}

// populate creates the initial objects.
func (r *run) populate(ctx context.Context) error {
	m := content.NewMaker(&r.plan.Objects, r.plan.Seed, 0)
	for n := range r.plan.Objects.Count {
		if _, err := r.engine.Create(ctx, m.Object(n)); err != nil {
			return fmt.Errorf("creating the initial objects: %w", err)
		}
		r.created.Add(1)
	}
	return nil
}

// readTraces reads the traces that the plan replays. It is called before anything starts,
// so that a bad line does not end a run in the middle.
func readTraces(p *scenario.Plan) (map[string][]trace.Change, error) {
	traces := map[string][]trace.Change{}
	for _, w := range p.Writers {
		if w.Trace == "" || traces[w.Trace] != nil {
			continue
		}
		for change, err := range p.Changes(w) {
			if err != nil {
				return nil, err
			}
			traces[w.Trace] = append(traces[w.Trace], change)
		}
	}
	return traces, nil
}

// replay writes the changes of a trace within the group's time, at intervals in proportion
// to those of the trace. Like [callers.callOnSchedule] it counts the changes that were due
// but not made. Changes that are due exactly at the end, such as the last one, are made
// even after it.
func (w *writer) replay(ctx context.Context) {
	changes := w.run.traces[w.spec.Trace]
	first, span := changes[0].Time, changes[len(changes)-1].Time.Sub(changes[0].Time)
	for i := range changes {
		c := &changes[i]
		part := min(1, max(0, c.Time.Sub(first).Seconds()/max(span.Seconds(), 1e-9)))
		due := w.spec.Start + time.Duration(part*float64(w.spec.Stop-w.spec.Start))
		if due < w.spec.Stop && w.run.stopwatch.Elapsed() > w.spec.Stop {
			w.group.missed.Add(uint64(len(changes) - i))
			return
		}
		at := w.run.stopwatch.At(due)
		if w.run.stopwatch.Until(ctx, at) != nil {
			return
		}
		_, err := w.apply(ctx, at, c)
		w.group.made(ctx, at, err)
	}
}

// apply writes one change of a trace and returns its revision. If it changes nothing, as the
// deletion of a missing object, it returns an older revision or zero.
func (w *writer) apply(ctx context.Context, due int64, c *trace.Change) (engine.Revision, error) {
	if c.Op == trace.Delete {
		gone, err := w.remove(ctx, c.Key)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			return 0, nil
		case err != nil:
			return 0, err
		}
		return gone.Revision, nil
	}
	it := w.maker.File(c.Key, c.Version)
	it.Due = due
	o, err := w.run.engine.Put(ctx, it)
	if err != nil {
		return 0, err
	}
	if o.Value.Version != c.Version {
		w.lost(o.Key, o.Revision)
	}
	return o.Revision, nil
}
