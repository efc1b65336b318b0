package load

import (
	"context"
	"errors"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
)

// readTraces reads the traces that the plan replays, before anything starts: a
// bad line must not be found in the middle of a run.
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

// replay makes the changes of a trace within the group's time, spread as they
// were when they happened. Those that are due before the end, but not made by
// then, it counts with all that follow, as [callers.keep] does. Those that are due
// at the very end, as the last of a trace are, can only be made after it.
func (w *writer) replay(ctx context.Context) {
	changes := w.run.traces[w.spec.Trace]
	first, span := changes[0].Time, changes[len(changes)-1].Time.Sub(changes[0].Time)
	for i := range changes {
		c := &changes[i]
		part := min(1, max(0, c.Time.Sub(first).Seconds()/max(span.Seconds(), 1e-9)))
		due := w.spec.Start + time.Duration(part*float64(w.spec.Stop-w.spec.Start))
		if due < w.spec.Stop && w.run.watch.elapsed() > w.spec.Stop {
			w.group.missed.Add(uint64(len(changes) - i))
			return
		}
		at := w.run.watch.at(due)
		if w.run.watch.until(ctx, at) != nil {
			return
		}
		_, err := w.apply(ctx, at, c)
		w.group.made(ctx, at, err)
	}
}

// apply makes one change of a trace and returns its revision, or an older one if
// it made no difference. To delete what is not there makes none.
func (w *writer) apply(ctx context.Context, due int64, c *trace.Change) (engine.Revision, error) {
	if c.Op == trace.Delete {
		gone, err := w.run.engine.Delete(ctx, c.Key, engine.DeleteOptions{})
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
	return o.Revision, nil
}
