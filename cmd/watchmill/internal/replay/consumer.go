package replay

import (
	"context"
	"errors"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/pace"
)

// errWritten wakes a consumer that waits: everything has been written, and the
// engine has passed all of it on.
var errWritten = errors.New("everything is written")

// consumer is the client of one watch after the other. It belongs to one
// goroutine.
type consumer struct {
	outcome // its state is what the events add up to, at revision seen
	run     *run
	// pace is nil for a consumer at full speed.
	pace   *pace.Consumer
	breaks breaks

	watch *engine.Watch[File]
	// opened is the engine's revision when the watch was opened: events up to it
	// are replayed.
	opened, seen engine.Revision
}

func newConsumer(r *run, number int) *consumer {
	c := &consumer{
		outcome: outcome{number: number, state: objects{}},
		run:     r,
		breaks:  newBreaks(r.opts.Seed, uint64(number), r.opts.Reconnect),
	}
	if number >= r.opts.Watchers-r.opts.Slow {
		c.pace = pace.NewConsumer(slow, 0)
	}
	return c
}

// consume is woken by written, which is done when all there will be has been
// passed on: then Next returns what there is, and does not wait for more.
func (c *consumer) consume(ctx, written context.Context) {
	defer func() { c.watch.Stop() }()
	for {
		events, err := c.watch.Next(written)
		switch {
		case len(events) > 0:
			err = c.take(ctx, events)
		case errors.Is(err, errWritten) && c.watch.Revision() < c.run.last:
			continue // woken while it had not looked at the last of it
		case errors.Is(err, errWritten) && c.breaks.due(1):
			err = c.resume(ctx, c.watch.Revision())
		case errors.Is(err, errWritten):
			return
		}
		if err != nil {
			if ctx.Err() == nil {
				c.lost = err
			}
			return
		}
	}
}

// take makes the events part of the state. At a break it breaks off in the
// middle, as a connection does: what it has not got to is lost with the watch.
func (c *consumer) take(ctx context.Context, events []engine.Event[File]) error {
	if c.pace != nil {
		if err := c.pace.Wait(ctx, len(events)); err != nil {
			return err
		}
	}
	now, n, broken := time.Now(), 0, false
	for n < len(events) && !broken {
		ev := events[n]
		c.apply(ev)
		// Between conflated events the state is not that of any revision.
		broken = ev.Marks == 0 && c.breaks.due(c.run.progress(ev.Revision))
		n++
	}
	c.delivered.Add(uint64(n))
	if c.pace == nil {
		c.run.latencies.record(c.number, now, events[:n], c.opened)
	}
	switch {
	case !broken:
		return nil
	case n == len(events):
		return c.resume(ctx, c.watch.Revision())
	}
	return c.resume(ctx, events[n-1].Revision)
}

// apply makes ev part of the state.
func (c *consumer) apply(ev engine.Event[File]) {
	_, there := c.state[ev.Key()]
	fits := ev.Marks != 0 || ev.Revision > c.seen
	switch ev.Type {
	case engine.Added:
		fits = fits && !there
		c.state[ev.Key()] = ev.Object
	case engine.Modified:
		fits = fits && there
		c.state[ev.Key()] = ev.Object
	case engine.Deleted:
		fits = fits && there
		delete(c.state, ev.Key())
	default:
		fits = false // nothing else was asked for
	}
	if ev.Is(engine.Conflated) {
		c.conflated++
	}
	if !fits {
		c.misfits++
	}
	c.seen = max(c.seen, ev.Revision)
}
