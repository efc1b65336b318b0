package dispatcher

import (
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// round dispatches the events that the watchCache has published since the last
// round: it evaluates them for every stream that may match, informs the watches that
// need events the window drops, and publishes the snapshot to all watches.
func (d *dispatcher) round() {
	prev, next := d.Feed.Load(), d.Source.Load()
	if prev == next {
		return
	}
	if d.inRound {
		// The previous round failed halfway: only some streams have its events.
		d.restartStreams(prev, next)
	} else {
		d.inRound = true
		d.evaluate(prev, next)
	}
	d.appendFound(prev.Window.Next(), next.Window.Next())
	d.arrive(next)
	if next.Epoch != prev.Epoch && prev.Generation > 0 {
		d.expireAll(next)
	} else if next.Window.First() > prev.Window.First() {
		d.moveWindow(prev, next)
	}
	d.Feed.Publish(next)
	d.inRound = false
	d.Stats.Rounds.Add(1)
	d.signal(prev, next)
	d.tellStalls()
	if d.OnRound != nil && next.Window.Next() > prev.Window.Next() {
		d.OnRound(prev, next)
	}
}

// evaluate finds the streams that match each new event.
func (d *dispatcher) evaluate(prev, next *window.Snapshot) {
	if len(d.order) == 0 {
		d.Stats.Events.Add(uint64(next.Window.Next() - prev.Window.Next()))
		return
	}
	for at := prev.Window.Next(); at < next.Window.Next(); {
		events, ok := next.Window.Read(at)
		if !ok {
			// The window has dropped events that the dispatcher has not read. Watches notice by themselves.
			d.restartStreams(prev, next)
			return
		}
		for _, ev := range events {
			candidates(d.interest, ev, func(e *filterEntry) { d.offer(e, ev) })
		}
		at += window.Seq(len(events))
		d.Stats.Events.Add(uint64(len(events)))
	}
}

// offer adds ev, as converted by the stream's filter, to the stream's found events.
func (d *dispatcher) offer(e *filterEntry, ev store.Event) {
	converted, ok := watcher.Convert(d.Schema, e.stream.Filter(), ev)
	if !ok {
		return
	}
	if e.found == nil {
		d.touched = append(d.touched, e)
	}
	e.found = append(e.found, converted)
}

// appendFound appends to each stream the events that the round over the positions in
// [from, to) has found for it.
func (d *dispatcher) appendFound(from, to window.Seq) {
	for _, e := range d.touched {
		if len(e.found) > 0 {
			e.stream.Append(from, to, e.found)
			e.found = nil
			e.settled = false
		}
	}
}

// restartStreams makes the members of every stream read from the window.
func (d *dispatcher) restartStreams(prev, next *window.Snapshot) {
	d.forgetTouched()
	for _, e := range d.order {
		e.found = nil
		e.settled = false
		e.stream.Restart(prev.Window.Next(), next.Window.Next())
		d.touched = append(d.touched, e)
	}
}

// arrive starts the pending watches whose revision is reached by next, which is
// about to be published. It ends those whose revision is inside a gap of the window
// or already trimmed, since the changes after it are unknown.
func (d *dispatcher) arrive(next *window.Snapshot) {
	for w, from, ok := d.pending.first(); ok && from <= next.Revision; w, from, ok = d.pending.first() {
		d.pending.remove(w)
		if w.Ended() {
			continue
		}
		at, err := next.Window.Seek(from)
		if err != nil {
			d.Stats.Expired.Add(1)
			d.end(w, err)
			continue
		}
		w.Arrive(at, from) // on a stream that is not settled, since a member was pending
		d.wake(w)
	}
}

// moveWindow informs every watch that may still need events which next no longer
// has, and has the streams drop those.
func (d *dispatcher) moveWindow(prev, next *window.Snapshot) {
	d.moveMembers(d.unfiltered, prev, next)
	first := next.Window.First()
	for _, e := range d.order {
		if e.settled && e.forgets > first {
			continue
		}
		if !e.settled {
			e.settled = d.moveMembers(e.stream, prev, next)
		}
		e.forgets = e.stream.Forget(first)
	}
}

// moveMembers informs the members of one stream. It reports whether all of them
// follow it and have read all of it.
func (d *dispatcher) moveMembers(s *watcher.Stream, prev, next *window.Snapshot) (settled bool) {
	settled = true
	for _, w := range s.Members() {
		switch w.WindowMoved(prev, next) {
		case watcher.Expired:
			d.Stats.Expired.Add(1)
			d.wake(w)
			settled = false
		case watcher.Reading:
			settled = false
		}
	}
	return settled
}

// expireAll ends every watch: storage went back in time, so their positions are
// invalid. A watch that has expired before has been counted.
func (d *dispatcher) expireAll(next *window.Snapshot) {
	d.endAll(func(w *watcher.Member) error {
		if !w.Over() {
			d.Stats.Expired.Add(1)
		}
		return &store.ExpiredError{Requested: w.Resume(), Oldest: next.Revision}
	})
}

// endAll ends every watch with the error that reason returns.
func (d *dispatcher) endAll(reason func(*watcher.Member) error) {
	d.each(func(w *watcher.Member) { d.end(w, reason(w)) })
}

// each calls f with every watch.
func (d *dispatcher) each(f func(*watcher.Member)) {
	for _, w := range d.unfiltered.Members() {
		f(w)
	}
	for _, e := range d.order {
		for _, w := range e.stream.Members() {
			f(w)
		}
	}
}

// end ends one watch.
func (d *dispatcher) end(w *watcher.Member, reason error) {
	w.EndQuietly(reason)
	d.wake(w)
}

// signal signals the consumers that wait for events or progress of next.
func (d *dispatcher) signal(prev, next *window.Snapshot) {
	end := next.Window.Next()
	if end > prev.Window.Next() {
		d.signalMembers(d.unfiltered, end)
	}
	for _, e := range d.touched {
		d.signalMembers(e.stream, end)
	}
	d.forgetTouched()
	d.notified.published(prev, next)
}

// forgetTouched empties touched, and keeps none of the streams, with their events, in its
// spare capacity.
func (d *dispatcher) forgetTouched() {
	clear(d.touched)
	d.touched = d.touched[:0]
}

// signalMembers signals the waiting members of a stream, and marks those that lag
// beyond their buffer as stalled. A signalled member is no longer waiting, so an
// absent consumer shows as lag.
func (d *dispatcher) signalMembers(s *watcher.Stream, end window.Seq) {
	for _, w := range s.Members() {
		switch {
		case w.ClearWaiting():
			d.signals.addPublished(w, d.Stats)
		case w.ExceedsBuffer(end) && w.SetStalled(end, d.Feed.Load().At):
			d.stalled(w)
		}
	}
}

// wake signals the watch's consumer, if it waits.
func (d *dispatcher) wake(w *watcher.Member) {
	if w.ClearWaiting() {
		d.signals.add(w)
	}
}
