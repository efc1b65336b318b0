package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// writer is one of a group of writers. It has a share of the objects to itself,
// so that whether a key is there is no matter of luck.
type writer struct {
	run   *run
	group *callers
	spec  *scenario.Writer
	maker *content.Maker
	clock *pace.Schedule
	zipf  *rand.Zipf
	// live are the numbers of its objects that there are, next that of the next
	// new one; it takes every stride'th.
	live         []int
	next, stride int
}

// newWriter makes the number'th of all writers, in its group the part'th.
func newWriter(r *run, g *callers, spec *scenario.Writer, part, number, stride int) *writer {
	w := &writer{run: r, group: g, spec: spec, maker: content.NewMaker(&r.plan.Objects, r.plan.Seed, uint64(number)+100), stride: stride}
	if spec.Trace != "" {
		return w
	}
	w.clock = schedule(spec, part, w.maker.Rand)
	for w.next = number; w.next < r.plan.Objects.Count; w.next += stride {
		w.live = append(w.live, w.next)
	}
	if spec.Hot > 0 {
		w.zipf = rand.NewZipf(w.maker.Rand, spec.Hot, 1, uint64(max(1, len(w.live))-1))
	}
	return w
}

// schedule says when the part'th of a group writes. Steady writers take turns;
// those of bursts write at once, each its part of every burst.
func schedule(spec *scenario.Writer, part int, chance *rand.Rand) *pace.Schedule {
	if spec.Shape == scenario.Bursts {
		own := (spec.Burst + spec.Count - 1 - part) / spec.Count
		return pace.NewSchedule(spec.Shape, spec.Rate*float64(own)/float64(spec.Burst), own, 0, chance)
	}
	turn := float64(part) / float64(spec.Count)
	return pace.NewSchedule(spec.Shape, spec.Rate/float64(spec.Count), 0, turn, chance)
}

// write makes each write when it is due, until the group's time is over.
func (w *writer) write(ctx context.Context) {
	if w.spec.Trace != "" {
		w.replay(ctx)
		return
	}
	w.group.keep(ctx, w.clock, w.spec.Start, w.spec.Stop, w.one)
}

// one makes a write by chance.
func (w *writer) one(ctx context.Context, due int64) error {
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

// pick draws one of the live objects: its place in live.
func (w *writer) pick() int {
	if w.zipf != nil {
		return int(w.zipf.Uint64() % uint64(len(w.live)))
	}
	return w.maker.Rand.IntN(len(w.live))
}

func (w *writer) emit(ctx context.Context, due int64) error {
	it := w.maker.Object(w.number())
	it.Due = due
	_, err := w.run.engine.Emit(ctx, it)
	return err
}

// number returns the number of an object to emit: one of few, since it is not
// kept.
func (w *writer) number() int { return w.maker.Rand.IntN(1000) }

func (w *writer) create(ctx context.Context, due int64) error {
	it := w.maker.Object(w.next)
	it.Due = due
	if _, err := w.run.engine.Create(ctx, it); err != nil {
		return err
	}
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
	_, err := w.run.engine.Update(ctx, w.run.plan.Objects.Key(n), change, engine.UpdateOptions{})
	return err
}

func (w *writer) delete(ctx context.Context, at int) error {
	if _, err := w.run.engine.Delete(ctx, w.run.plan.Objects.Key(w.live[at]), engine.DeleteOptions{}); err != nil {
		return err
	}
	last := len(w.live) - 1
	w.live[at] = w.live[last]
	w.live = w.live[:last]
	return nil
}

// populate creates the objects that there are at the start.
func (r *run) populate(ctx context.Context) error {
	m := content.NewMaker(&r.plan.Objects, r.plan.Seed, 0)
	for n := range r.plan.Objects.Count {
		if _, err := r.engine.Create(ctx, m.Object(n)); err != nil {
			return fmt.Errorf("creating the objects there are at the start: %w", err)
		}
		r.created.Add(1)
	}
	return nil
}

// isInterrupt reports whether a call failed since the run is being stopped.
func isInterrupt(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, engine.ErrEngineClosed)
}
