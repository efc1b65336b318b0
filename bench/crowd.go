package bench

import (
	"context"
	"fmt"
	"time"
)

// member is one watcher of a crowd. It is padded to cache lines of its own; only
// its handler writes the counters.
type member struct {
	// count is the number of events received, and want the number expected.
	count, want int64
	// took holds the latencies, in nanoseconds; nil if they are not measured.
	took []int64
	// complete receives one value when count reaches want.
	complete chan struct{}
	watch    Watch
	_        [8]uint64
}

// crowd has the watchers of a run.
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

// newShares makes p.Watchers watchers in n groups. Each expects, and times, every n-th
// write: the i-th watcher the writes whose number is i modulo n.
func newShares(p Params, n int, w *writer) *crowd {
	c := &crowd{members: make([]member, p.Watchers), writer: w}
	for i := range c.members {
		c.members[i].expect((p.Events-i%n+n-1)/n, true)
	}
	return c
}

// expect prepares the watcher for want events.
func (m *member) expect(want int, timed bool) {
	m.complete, m.want = make(chan struct{}, 1), int64(want)
	if want == 0 {
		m.complete <- struct{}{}
	}
	if timed {
		m.took = make([]int64, 0, want)
	}
}

// handler returns the i-th watcher's event handler.
func (c *crowd) handler(i int) func(seq int64) {
	m := &c.members[i]
	if m.took == nil {
		return func(int64) { m.countEvent() }
	}
	return func(seq int64) {
		m.took = append(m.took, c.writer.since(seq))
		m.countEvent()
	}
}

func (m *member) countEvent() {
	if m.count++; m.count == m.want {
		m.complete <- struct{}{}
	}
}

// opener opens the i-th watch.
type opener func(i int, handle func(seq int64)) (Watch, error)

// open opens all watches.
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

// stop stops the watches that were opened.
func (c *crowd) stop() {
	for i := range c.members {
		if w := c.members[i].watch; w != nil {
			w.Stop()
		}
	}
}

// watching opens watches of s from a revision.
func watching(ctx context.Context, s Store, from uint64, selection func(i int) Selection) opener {
	return func(i int, handle func(seq int64)) (Watch, error) { return s.Watch(ctx, selection(i), from, handle) }
}

// everything is the selection of watchers of all objects.
func everything(int) Selection { return Selection{} }

// await blocks until each watcher has all its events or has been closed.
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

// run writes while the crowd watches, until each watcher has all its events. It
// returns how long the crowd took: less than the writer, if all watchers were
// closed before.
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

// writes runs the writer on s and returns the rate of writes, latency and losses.
func (c *crowd) writes(ctx context.Context, s Store) (Result, error) {
	took, err := c.run(ctx, writerTo(s))
	if err != nil {
		return nil, err
	}
	result := c.result(took)
	result[0] = rate(Writes, int64(c.writer.events), took)
	return result, nil
}

// repeated returns an error if a watcher received too many events, which in a sum
// would hide another watcher's losses.
func (c *crowd) repeated() error {
	for i := range c.members {
		if m := &c.members[i]; m.count > m.want {
			return fmt.Errorf("watcher %d got %d events instead of %d", i, m.count, m.want)
		}
	}
	return nil
}

// delivered returns the number of events delivered and lost, and the number of
// watchers that did not receive all of theirs.
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

// latency merges the latencies of the timed members.
func (c *crowd) latency() latency {
	l := newLatency()
	for i := range c.members {
		for _, ns := range c.members[i].took {
			l.add(ns)
		}
	}
	return l
}

// result returns throughput, latency and losses of a run of that duration.
func (c *crowd) result(took time.Duration) Result {
	delivered, lost, closed := c.delivered()
	return append(append(Result{rate(Deliveries, delivered, took)}, c.latency().metrics()...),
		percent(Lost, lost, delivered+lost), count(LostWatches, closed))
}
