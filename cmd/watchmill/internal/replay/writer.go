package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/trace"
)

// write makes the trace's changes, one after the other, each when it is due. It
// stops at the first error, such as ctx's cause.
func (r *run) write(ctx context.Context) error {
	s := schedule{speed: r.opts.Speed, start: time.Now(), origin: r.input.changes[0].Time}
	for i := range r.input.changes {
		c := &r.input.changes[i]
		if err := s.wait(ctx, c); err != nil {
			return err
		}
		rev, err := r.apply(ctx, c)
		if err != nil {
			return fmt.Errorf("%s %s: %w", c.Op, c.Key, err)
		}
		if rev > r.last {
			r.last = rev
		} else {
			r.noOps++
		}
		r.written.Add(1)
	}
	return nil
}

// apply makes one change and returns its revision, or an older one if it made no
// difference.
func (r *run) apply(ctx context.Context, c *trace.Change) (engine.Revision, error) {
	if c.Op == trace.Put {
		o, err := r.engine.Put(ctx, File{Path: c.Key, Version: c.Version})
		if err != nil {
			return 0, err
		}
		return o.Revision, nil
	}
	gone, err := r.engine.Delete(ctx, c.Key, engine.DeleteOptions{})
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return gone.Revision, nil
}

// passedOn waits until the engine has passed the last write on to all watches:
// until then one that has nothing to read cannot tell that nothing is to come.
// The revision of the cache is no sign of it, since the cache is ahead of the
// watches. What a watch of everything has been given is one.
func (r *run) passedOn(ctx context.Context) error {
	if r.last == r.base {
		return nil
	}
	err := r.engine.WaitFor(ctx, r.last)
	for errors.Is(err, engine.ErrFuture) { // it may be behind for longer than a read would wait
		err = r.engine.WaitFor(ctx, r.last)
	}
	if err != nil {
		return err
	}
	probe, err := r.engine.Watch(ctx, engine.WatchOptions{Last: 1})
	if err != nil {
		return err
	}
	defer probe.Stop()
	for probe.Revision() < r.last {
		if _, err := probe.Next(ctx); err != nil {
			return err
		}
	}
	return nil
}
