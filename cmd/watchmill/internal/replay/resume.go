package replay

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
)

// open starts a watch of what happens after from; zero means from now on.
func (c *consumer) open(ctx context.Context, from engine.Revision) error {
	c.opened = c.run.engine.Revision()
	watch, err := c.run.engine.Watch(ctx, engine.WatchOptions{
		From: from, Fields: c.run.opts.Select, Policy: c.run.opts.Policy,
	})
	if err == nil {
		c.watch = watch
	}
	return err
}

// resume breaks the watch off and goes on from where it was. If the window does
// not reach back so far, it lists again, as often as it takes.
func (c *consumer) resume(ctx context.Context, from engine.Revision) error {
	c.watch.Stop()
	c.resumed++
	err := c.open(ctx, from)
	for errors.Is(err, engine.ErrExpired) {
		c.relisted++
		if from, err = c.relist(ctx); err == nil {
			err = c.open(ctx, from)
		}
	}
	return err
}

// relist makes the state that of a list, which is not older than what it was,
// and returns the list's revision.
func (c *consumer) relist(ctx context.Context) (engine.Revision, error) {
	list, err := c.run.engine.List(ctx, engine.ListOptions{
		Fields: c.run.opts.Select, Read: engine.NotOlderThan(c.seen),
	})
	if err != nil {
		return 0, err
	}
	c.state, c.seen = byKey(list.Items), list.Revision
	return list.Revision, nil
}

func byKey(objects []*engine.Object[File]) map[string]*engine.Object[File] {
	state := make(map[string]*engine.Object[File], len(objects))
	for _, o := range objects {
		state[o.Key] = o
	}
	return state
}
