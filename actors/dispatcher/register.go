package dispatcher

import (
	"errors"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// ErrFailed: the dispatcher failed while it took in a watch, which is gone. It
// goes on with the others.
var ErrFailed = errors.New("dispatcher failed while it took in the watch: try again")

// admit answers a registration, also if it fails with a panic: who waits for
// the answer knows nothing of supervision.
func (d *dispatcher) admit(ctx *actors.Context, m Register) {
	err := ErrFailed
	defer func() {
		if err != nil {
			m.Watch.Finish(err)
		}
		m.Reply <- err
	}()
	d.catchUp(ctx)
	err = d.register(ctx, m)
}

// register adopts a watch: from here on events reach it.
func (d *dispatcher) register(ctx *actors.Context, m Register) error {
	w := m.Watch
	stream := d.join(m.Filter)
	w.Begin(stream, m.Start, m.OnPool)
	executor := d.onOwn.executor
	if w.OnPool() {
		executor = d.onPool.executor
	}
	if err := actors.SpawnWake(ctx, w, w.Box(), executor); err != nil {
		d.leave(stream)
		w.Finish(err)
		return err
	}
	stream.Join(w)
	d.watches[w.Box().ID()] = w
	d.Stats.Watches.Add(1)
	if w.Options().Bookmarks {
		d.bookmarks.add(ctx, w)
	}
	if !w.Options().Deadline.IsZero() {
		d.deadlines.add(ctx, d, w)
	}
	if from := m.Start.Skip; from > 0 {
		d.future.add(w, from)
	}
	d.overtake(w, m)
	if w.Ended() {
		// It ended while it was on its way: its actor must end too.
		w.Box().Stop()
		return w.Err()
	}
	if w.Handled() {
		d.wake(w)
	}
	return nil
}

// overtake tells a watch what has happened to its start while it was on its
// way here, if the dispatcher got ahead of the message.
func (d *dispatcher) overtake(w *watcher.Watch, m Register) {
	now := d.Feed.Load()
	switch {
	case now.Epoch != m.Snapshot.Epoch:
		w.Finish(&store.ExpiredError{Requested: m.Start.After, Oldest: now.Revision})
	case m.Start.Next < now.Window.First() && w.Overrun(m.Snapshot, now) == watcher.Lost:
		d.Stats.Expired.Add(1)
	}
}

// join returns the stream of a filter, made if there is none. A watch of a
// stream that exists and is in order needs no new evaluation.
func (d *dispatcher) join(f *store.Filter) *watcher.Stream {
	if f.Everything() {
		return d.everyone
	}
	key := f.Canonical()
	r := d.streams[key]
	if r == nil {
		r = &route{stream: watcher.NewStream(d.Schema, f, d.Feed.Load().Window.Next())}
		r.place = d.interest.add(f, r)
		r.index = len(d.routes)
		d.routes = append(d.routes, r)
		d.streams[key] = r
		d.Stats.Streams.Add(1)
	}
	r.settled = false
	return r.stream
}

// leave drops a stream that nobody is a member of.
func (d *dispatcher) leave(s *watcher.Stream) {
	if s.Everything() || len(s.Members()) > 0 {
		return
	}
	key := s.Filter().Canonical()
	r, last := d.streams[key], len(d.routes)-1
	d.interest.remove(r.place)
	d.routes[r.index] = d.routes[last]
	d.routes[r.index].index = r.index
	d.routes[last] = nil
	d.routes = d.routes[:last]
	delete(d.streams, key)
	d.Stats.Streams.Add(-1)
}

// forget takes a watch that has ended out of everything: forgetWatcher.
func (d *dispatcher) forget(ctx *actors.Context, w *watcher.Watch) {
	w.Finish(watcher.ErrEngineClosed) // no effect unless its actor was stopped from above
	stream := w.Stream()
	stream.Leave(w)
	d.leave(stream)
	d.bookmarks.remove(w)
	d.deadlines.remove(w)
	d.slow.release(ctx, w)
	d.countStalled()
	d.Stats.Watches.Add(-1)
	d.Stats.count(w.Err())
}

// count adds an end to the figures.
func (s *Stats) count(reason error) {
	switch {
	case errors.Is(reason, watcher.ErrSlowConsumer):
		s.Terminated.Add(1)
	case errors.Is(reason, watcher.ErrHandlerPanic):
		s.Panicked.Add(1)
	case errors.Is(reason, watcher.ErrDeadline):
		s.DeadlinesReached.Add(1)
	}
}
