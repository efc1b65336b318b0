package load

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
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

// apply makes one change of a trace. To delete what is not there is as good.
func (w *writer) apply(ctx context.Context, due int64, c *trace.Change) error {
	if c.Op == trace.Delete {
		_, err := w.run.engine.Delete(ctx, c.Key, engine.DeleteOptions[content.Item]{})
		if errors.Is(err, engine.ErrNotFound) {
			return nil
		}
		return err
	}
	it := w.maker.File(c.Key)
	it.Due = due
	_, err := w.run.engine.Put(ctx, it)
	return err
}
