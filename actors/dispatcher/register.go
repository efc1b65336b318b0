package dispatcher

import (
	"cmp"
	"errors"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// ErrFailed: the dispatcher failed while it registered a watch, which is lost. The
// others continue.
var ErrFailed = errors.New("dispatcher failed while it registered the watch: try again")

// admit registers a watch and answers, even if registering panics, since the caller
// would wait forever.
func (d *dispatcher) admit(ctx *actors.Context, m Register) {
	err := ErrFailed
	defer func() {
		if m.Resumes {
			d.Stats.countResume(err)
		}
		if err != nil {
			d.end(m.Watch, err)
		}
		m.answer(err)
	}()
	d.catchUp()
	err = d.register(ctx, m)
}

// register adds a watch, which gets events from now on.
func (d *dispatcher) register(ctx *actors.Context, m Register) error {
	w := m.Watch
	start, err := d.startOf(m)
	if err != nil {
		return err
	}
	stream := d.join(m.Filter)
	w.Begin(stream, start)
	if w.Ended() { // it ended before it was registered
		d.drop(stream)
		return w.Err()
	}
	d.spawn(ctx, w)
	stream.Join(w)
	d.Stats.Watches.Add(1)
	d.schedule(ctx, w, m.Deadline)
	switch now := d.Feed.Load(); {
	case start.Pending > 0:
		d.pending.add(w, start.Pending)
	case start.Next < now.Window.First() && w.WindowMoved(m.Snapshot, now) == watcher.Expired:
		d.Stats.Expired.Add(1)
	}
	d.signalFirst(w)
	d.endWhenCaughtUp(w)
	return w.Err()
}

// startOf returns the start of a watch, corrected if the dispatcher has read a newer
// snapshot than the one for which the watchCache decided it.
func (d *dispatcher) startOf(m Register) (watcher.Start, error) {
	now := d.Feed.Load()
	other := now.Epoch != m.Snapshot.Epoch
	switch later := m.Now && m.Start.Pending == 0; {
	case other && later && m.AnyEpoch:
		return m.Start.At(now), nil
	case other:
		return m.Start, &store.ExpiredError{Requested: cmp.Or(m.Start.Pending, m.Start.After), Oldest: now.Revision}
	case m.Start.Pending > 0 && m.Start.Pending <= now.Revision:
		at, err := now.Window.Seek(m.Start.Pending)
		return watcher.Start{Next: at, After: m.Start.Pending}, err
	case later && m.Start.Next < now.Window.First():
		return m.Start.At(now), nil
	}
	return m.Start, nil
}

// spawn starts the watch's actor, if it has one.
func (d *dispatcher) spawn(ctx *actors.Context, w *watcher.Member) {
	box := w.Box()
	if box == nil {
		return
	}
	w.Spawn(ctx, d.signals.executorOf(w))
	if w.Ended() {
		box.Stop() // which did nothing when it had no actor
	}
}

// schedule schedules the watch's deadline and bookmarks.
func (d *dispatcher) schedule(ctx *actors.Context, w *watcher.Member, deadline watcher.Deadline) {
	if !deadline.At.IsZero() {
		d.deadlines.add(ctx, w, deadline)
	}
	if w.Bookmarks() {
		d.bookmarks.add(ctx, w) // the last before the deadline
	}
	if w.Notified() || w.Progress() {
		d.notified.add(w)
	}
}

// signalFirst signals the consumer for the first time: a handler unless there is nothing
// for it, others if they are waiting already.
func (d *dispatcher) signalFirst(w *watcher.Member) {
	if w.Box() != nil {
		if !w.SetWaiting() {
			d.signals.add(w)
		}
	} else if w.Waiting() && w.Unread() {
		d.wake(w)
	}
}

// join returns the stream of a filter, creating it if necessary.
func (d *dispatcher) join(f *store.Filter) *watcher.Stream {
	if f.Everything() {
		return d.unfiltered
	}
	key := f.Canonical()
	e := d.entries[key]
	if e == nil {
		e = &filterEntry{stream: watcher.NewStream(d.Schema, f, d.Feed.Load().Window.Next())}
		e.slot = d.interest.add(f, e)
		e.index = len(d.order)
		d.order = append(d.order, e)
		d.entries[key] = e
		d.Stats.Streams.Add(1)
	}
	e.settled = false
	return e.stream
}

// drop removes a stream without members.
func (d *dispatcher) drop(s *watcher.Stream) {
	if s.Everything() || len(s.Members()) > 0 {
		return
	}
	key := s.Filter().Canonical()
	e, last := d.entries[key], len(d.order)-1
	d.interest.remove(e.slot)
	d.order[e.index] = d.order[last]
	d.order[e.index].index = e.index
	d.order[last] = nil
	d.order = d.order[:last]
	delete(d.entries, key)
	s.Release()
	d.Stats.Streams.Add(-1)
}

// forget removes a watch that has ended from all indexes, like Kubernetes' forgetWatcher.
func (d *dispatcher) forget(ctx *actors.Context, w *watcher.Member) {
	if !w.Joined() {
		return // it ended before it was registered
	}
	stream := w.Stream()
	stream.Leave(w)
	d.drop(stream)
	d.bookmarks.remove(w)
	d.deadlines.remove(w)
	d.pending.remove(w)
	d.notified.remove(w)
	slow := d.slow.set.remove(w)
	d.countStalled()
	d.tellEnd(w) // last: what sees the count finds the end recorded
	if slow {
		d.slow.giveBack(ctx) // last of all, since it uses the clock, which may panic
	}
	d.deadlines.stopIdle()
}

// tellEnd counts a watch that has ended, and calls OnEnd, which may end the goroutine.
func (d *dispatcher) tellEnd(w *watcher.Member) {
	defer d.Stats.Watches.Add(-1)
	d.Stats.countEnd(w.Err())
	if d.OnEnd != nil {
		d.OnEnd(w)
	}
}

// tellEnds does what forget does for the watches that are registered when the dispatcher
// stops, since it handles no Ended for them any more. All have ended. The indexes are not
// used again, so they stay as they are.
func (d *dispatcher) tellEnds() {
	d.Stats.Streams.Add(-int64(len(d.order)))
	d.Stats.Stalled.Add(-d.slow.counted)
	var all []*watcher.Member
	d.each(func(w *watcher.Member) { all = append(all, w) })
	usercode.Each(all, d.tellEnd)
}
