package dispatcher

import (
	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// round takes what the watchCache has published since the last one: it
// evaluates the new events for every stream that may care, tells whom the
// window has left behind, and lets the watchers read.
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
	d.append(prev.Window.Next(), next.Window.Next())
	d.Stats.Expired.Add(d.future.arrive(next))
	if next.Epoch != prev.Epoch && prev.Generation > 0 {
		d.expireAll(next)
	} else if next.Window.First() > prev.Window.First() {
		d.overrun(prev, next)
	}
	d.Feed.Publish(next)
	d.inRound = false
	d.Stats.Rounds.Add(1)
	if next.Window.Next() > prev.Window.Next() {
		d.wakeMembers(ctx, d.everyone, next.Window.Next())
	}
	for _, r := range d.touched {
		d.wakeMembers(ctx, r.stream, next.Window.Next())
	}
	d.touched = d.touched[:0]
}

// evaluate finds the streams that care for each new event.
func (d *dispatcher) evaluate(prev, next *store.Snapshot) {
	if len(d.routes) == 0 {
		d.Stats.Events.Add(uint64(next.Window.Next() - prev.Window.Next()))
		return
	}
	for at := prev.Window.Next(); at < next.Window.Next(); {
		events, ok := next.Window.Read(at)
		if !ok {
			// The window went past the dispatcher itself. Watchers find out from it.
			d.restartStreams(prev, next)
			return
		}
		for _, ev := range events {
			candidates(d.interest, ev, func(r *route) { d.offer(r, ev) })
		}
		at += store.Seq(len(events))
		d.Stats.Events.Add(uint64(len(events)))
	}
}

// offer adds ev to the stream's round if its filter lets it through.
func (d *dispatcher) offer(r *route, ev store.Event) {
	converted, ok := watcher.Convert(d.Schema, r.stream.Filter(), ev)
	if !ok {
		return
	}
	if r.pending == nil {
		d.touched = append(d.touched, r)
	}
	r.pending = append(r.pending, converted)
}

// append hands each stream what the round from position from to position to has
// found for it.
func (d *dispatcher) append(from, to store.Seq) {
	for _, r := range d.touched {
		if len(r.pending) > 0 {
			r.stream.Append(from, to, r.pending)
			r.pending = nil
			r.settled = false
		}
	}
}

// restartStreams sends the members of every stream to the window.
func (d *dispatcher) restartStreams(prev, next *store.Snapshot) {
	d.touched = d.touched[:0]
	for _, r := range d.routes {
		r.pending = nil
		r.settled = false
		r.stream.Restart(prev.Window.Next(), next.Window.Next())
		d.touched = append(d.touched, r)
	}
}

// overrun tells every watch that may still need what next no longer holds.
func (d *dispatcher) overrun(prev, next *store.Snapshot) {
	d.overrunMembers(d.everyone, prev, next)
	for _, r := range d.routes {
		if !r.settled {
			r.settled = d.overrunMembers(r.stream, prev, next)
		}
	}
}

// overrunMembers tells the members of one stream. It reports whether all of them
// follow it and have taken all of it.
func (d *dispatcher) overrunMembers(s *watcher.Stream, prev, next *store.Snapshot) (settled bool) {
	settled = true
	for _, w := range s.Members() {
		switch w.Overrun(prev, next) {
		case watcher.Lost:
			d.Stats.Expired.Add(1)
			d.wake(w)
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
	d.finishAll(func(w *watcher.Watch) error {
		if !w.Over() {
			d.Stats.Expired.Add(1)
		}
		return &store.ExpiredError{Requested: w.Revision(), Oldest: next.Revision}
	})
}

// finishAll ends every watch with what reason says.
func (d *dispatcher) finishAll(reason func(*watcher.Watch) error) {
	finish := func(s *watcher.Stream) {
		for _, w := range s.Members() {
			w.Finish(reason(w))
		}
	}
	finish(d.everyone)
	for _, r := range d.routes {
		finish(r.stream)
	}
}

// wakeMembers wakes those who wait for events, and calls stalled those who lag
// beyond their buffer. Who was woken is disarmed, so that one whose consumer has
// gone is seen to lag.
func (d *dispatcher) wakeMembers(ctx *actors.Context, s *watcher.Stream, next store.Seq) {
	for _, w := range s.Members() {
		switch {
		case w.Disarm():
			d.wake(w)
		case w.Behind(next) && w.SetStalled():
			d.stalled(ctx, w)
		}
	}
}

// wake has w's turn come with the next wakeAll.
func (d *dispatcher) wake(w *watcher.Watch) {
	if w.OnPool() {
		d.onPool.boxes = append(d.onPool.boxes, w.Box())
	} else {
		d.onOwn.boxes = append(d.onOwn.boxes, w.Box())
	}
}

func (d *dispatcher) wakeAll() {
	for _, wakes := range []*wakes{&d.onPool, &d.onOwn} {
		if len(wakes.boxes) == 0 {
			continue
		}
		actors.WakeAll(wakes.executor, wakes.boxes)
		d.Stats.Wakes.Add(uint64(len(wakes.boxes)))
		clear(wakes.boxes)
		wakes.boxes = wakes.boxes[:0]
	}
}
