package bench

import (
	"context"
	"fmt"
	"time"
)

// member is one watcher of a crowd. Its counters are its own cache lines; only
// its handler writes them.
type member struct {
	// count is how many events came, want how many are to.
	count, want int64
	// took has the latencies, in nanoseconds; nil if they are not measured.
	took []int64
	// complete gets one value when all have come, in whatever order.
	complete chan struct{}
	watch    Watch
	_        [8]uint64
}

// crowd is the watchers of a run.
type crowd struct {
	members []member
	writer  *writer
}

// newCrowd makes n watchers that expect every write, of which the first timed
// ones measure latency.
func newCrowd(n, timed int, w *writer) *crowd {
	c := &crowd{members: make([]member, n), writer: w}
	for i := range c.members {
		c.members[i].expect(w.events, i < timed)
	}
	return c
}

// newShares makes p.Watchers watchers that expect, and time, every p.Objects-th
// write: the i-th those of the i-th object.
func newShares(p Params, w *writer) *crowd {
	c := &crowd{members: make([]member, p.Watchers), writer: w}
	for i := range c.members {
		c.members[i].expect((p.Events-i+p.Objects-1)/p.Objects, true)
	}
	return c
}

// expect makes the watcher ready for so many events.
func (m *member) expect(want int, timed bool) {
	m.complete, m.want = make(chan struct{}, 1), int64(want)
	if timed {
		m.took = make([]int64, 0, want)
	}
}

// handler returns what the i-th watcher does with an event.
func (c *crowd) handler(i int) func(seq int64) {
	m := &c.members[i]
	if m.took == nil {
		return func(int64) { m.see() }
	}
	return func(seq int64) {
		m.took = append(m.took, c.writer.since(seq))
		m.see()
	}
}

// see counts an event.
func (m *member) see() {
	if m.count++; m.count == m.want {
		m.complete <- struct{}{}
	}
}

// opener opens the i-th watch.
type opener func(i int, handle func(seq int64)) (Watch, error)

// open has everybody watch.
func (c *crowd) open(open opener) error {
	for i := range c.members {
		w, err := open(i, c.handler(i))
		if err != nil {
			return err
		}
		c.members[i].watch = w
	}
	return nil
}

// watching opens watches of s from a revision on.
func watching(ctx context.Context, s Store, from uint64, selection func(i int) Selection) opener {
	return func(i int, handle func(seq int64)) (Watch, error) { return s.Watch(ctx, selection(i), from, handle) }
}

// everything is the selection of those who watch everything.
func everything(int) Selection { return Selection{} }

// await blocks until each has all its events or has been closed.
func (c *crowd) await(ctx context.Context) error {
	for i := range c.members {
		m := &c.members[i]
		select {
		case <-m.complete:
		case <-m.watch.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// run writes while the crowd watches, until all have all. It returns how long
// that took for the crowd: less than the writing, if all were closed before.
func (c *crowd) run(ctx context.Context, write func(context.Context, Object) error) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wrote := make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(wrote)
		if err := c.writer.run(ctx, write); err != nil {
			cancel(err)
		}
	}()
	err := c.await(ctx)
	took := time.Since(begin)
	<-wrote
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = c.repeated()
	}
	return took, err
}

// repeated is an error if somebody got more than there was. In a sum that would
// hide what somebody else lost.
func (c *crowd) repeated() error {
	for i := range c.members {
		if m := &c.members[i]; m.count > m.want {
			return fmt.Errorf("watcher %d got %d events instead of %d", i, m.count, m.want)
		}
	}
	return nil
}

// delivered is how many events were, lost how many were not, and closed how many
// watchers did not get all of theirs.
func (c *crowd) delivered() (delivered, lost, closed int64) {
	for i := range c.members {
		m := &c.members[i]
		delivered += m.count
		lost += m.want - m.count
		if m.count < m.want {
			closed++
		}
	}
	return delivered, lost, closed
}

// latency folds what the timed members measured.
func (c *crowd) latency() latency {
	l := newLatency()
	for i := range c.members {
		for _, ns := range c.members[i].took {
			l.add(ns)
		}
	}
	return l
}

// result is throughput, latency and losses of a run that took so long.
func (c *crowd) result(took time.Duration) Result {
	delivered, lost, closed := c.delivered()
	return append(append(Result{rate(Deliveries, delivered, took)}, c.latency().metrics()...),
		percent(Lost, lost, delivered+lost), count(LostWatches, closed))
}
