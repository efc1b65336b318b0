package dispatcher

import (
	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// round takes what the watchCache has published since the last one: it
// evaluates the new events for every stream that may care, tells the watches that
// the window leaves behind, and lets all of them read.
func (d *dispatcher) round(ctx *actors.Context) {
	prev, next := d.Feed.Load(), d.Source.Load()
	if prev == next {
		return
	}
	if d.inRound {
		// The round before failed halfway: some streams may have it, some not.
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
	d.signal(ctx, prev, next)
	if d.OnRound != nil && next.Window.Next() > prev.Window.Next() {
		d.OnRound(prev, next)
	}
}

// evaluate finds the streams that care for each new event.
func (d *dispatcher) evaluate(prev, next *store.Snapshot) {
	if len(d.order) == 0 {
		d.Stats.Events.Add(uint64(next.Window.Next() - prev.Window.Next()))
		return
	}
	for at := prev.Window.Next(); at < next.Window.Next(); {
		events, ok := next.Window.Read(at)
		if !ok {
			// The window went past the dispatcher itself. Watches find out from it.
			d.restartStreams(prev, next)
			return
		}
		for _, ev := range events {
			candidates(d.interest, ev, func(e *filterEntry) { d.offer(e, ev) })
		}
		at += store.Seq(len(events))
		d.Stats.Events.Add(uint64(len(events)))
	}
}

// offer adds ev to what the round has found for a stream if its filter lets it
// through.
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

// appendFound hands each stream what the round from position from to position to
// has found for it.
func (d *dispatcher) appendFound(from, to store.Seq) {
	for _, e := range d.touched {
		if len(e.found) > 0 {
			e.stream.Append(from, to, e.found)
			e.found = nil
			e.settled = false
		}
	}
}

// restartStreams sends the members of every stream to the window.
func (d *dispatcher) restartStreams(prev, next *store.Snapshot) {
	d.touched = d.touched[:0]
	for _, e := range d.order {
		e.found = nil
		e.settled = false
		e.stream.Restart(prev.Window.Next(), next.Window.Next())
		d.touched = append(d.touched, e)
	}
}

// arrive has the pending watches begin whose revision comes with next, which is
// about to be published. Those end whose revision has come to lie where a list
// took the place of what happened, or is gone already: what changed since for
// their consumers is not known.
func (d *dispatcher) arrive(next *store.Snapshot) {
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
		w.Arrive(at, from)
		d.unsettle(w.Stream())
		d.rouse(w)
	}
}

// unsettle notes that a member of the stream is not known to follow it.
func (d *dispatcher) unsettle(s *watcher.Stream) {
	if !s.Everything() {
		d.entries[s.Filter().Canonical()].settled = false
	}
}

// moveWindow tells every watch that may still need what next no longer holds.
func (d *dispatcher) moveWindow(prev, next *store.Snapshot) {
	d.moveMembers(d.unfiltered, prev, next)
	for _, e := range d.order {
		if !e.settled {
			e.settled = d.moveMembers(e.stream, prev, next)
		}
	}
}

// moveMembers tells the members of one stream. It reports whether all of them
// follow it and have taken all of it.
func (d *dispatcher) moveMembers(s *watcher.Stream, prev, next *store.Snapshot) (settled bool) {
	settled = true
	for _, w := range s.Members() {
		switch w.WindowMoved(prev, next) {
		case watcher.Lost:
			d.Stats.Expired.Add(1)
			d.rouse(w)
			settled = false
		case watcher.Reading:
			settled = false
		}
	}
	return settled
}

// expireAll ends every watch: storage went back in time, so their positions
// mean nothing any more. One that was lost before has been counted.
func (d *dispatcher) expireAll(next *store.Snapshot) {
	d.endAll(func(w *watcher.Member) error {
		if !w.Over() {
			d.Stats.Expired.Add(1)
		}
		return &store.ExpiredError{Requested: w.Resume(), Oldest: next.Revision}
	})
}

// endAll ends every watch with what reason says.
func (d *dispatcher) endAll(reason func(*watcher.Member) error) {
	endMembers := func(s *watcher.Stream) {
		for _, w := range s.Members() {
			d.end(w, reason(w))
		}
	}
	endMembers(d.unfiltered)
	for _, e := range d.order {
		endMembers(e.stream)
	}
}

// end ends one watch.
func (d *dispatcher) end(w *watcher.Member, reason error) {
	w.EndQuietly(reason)
	d.rouse(w)
}

// signal has the consumers look that wait for what came with next.
func (d *dispatcher) signal(ctx *actors.Context, prev, next *store.Snapshot) {
	end := next.Window.Next()
	if end > prev.Window.Next() {
		d.signalMembers(d.unfiltered, end)
	}
	for _, e := range d.touched {
		d.signalMembers(e.stream, end)
	}
	d.touched = d.touched[:0]
	d.notified.published(ctx, prev, next)
}

// signalMembers has the members of a stream look that wait, and calls stalled
// those that lag beyond their buffer. A member that is signalled waits no more, so
// that one whose consumer has gone is seen to lag.
func (d *dispatcher) signalMembers(s *watcher.Stream, end store.Seq) {
	for _, w := range s.Members() {
		switch {
		case w.ClearWaiting():
			d.signals.add(w)
		case w.Behind(end) && w.SetStalled(d.Feed.Load().At):
			d.stalled(w)
		}
	}
}

// rouse has the watch's consumer look, if it waits.
func (d *dispatcher) rouse(w *watcher.Member) {
	if w.ClearWaiting() {
		d.signals.add(w)
	}
}
