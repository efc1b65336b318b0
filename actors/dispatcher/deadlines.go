package dispatcher

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
)

// deadlines ends watches at their deadlines, with one timer for the earliest.
type deadlines struct {
	d     *dispatcher
	queue *watchQueue[watcher.Deadline]
	timer clock.Timer
}

func newDeadlines(d *dispatcher) *deadlines {
	earlier := func(a, b watcher.Deadline) bool { return a.At.Before(b.At) }
	return &deadlines{d: d, queue: newWatchQueue(earlier)}
}

func (q *deadlines) add(ctx *actors.Context, w *watcher.Member, deadline watcher.Deadline) {
	q.queue.add(w, deadline)
	if first, _, _ := q.queue.first(); first == w {
		q.rearm(ctx)
	}
}

// remove removes a watch, if present. The timer may then fire early.
func (q *deadlines) remove(w *watcher.Member) { q.queue.remove(w) }

// stopIdle stops the timer if there is no watch that it is for.
func (q *deadlines) stopIdle() {
	if q.queue.len() == 0 {
		q.stop()
	}
}

// arm arms the timer for the earliest deadline, if there is one.
func (q *deadlines) arm(ctx *actors.Context) {
	_, deadline, ok := q.queue.first()
	if q.timer != nil || !ok {
		return
	}
	left := deadline.At.Sub(ctx.Clock().Now())
	q.timer = ctx.Clock().AfterFunc(left, func() { q.d.self.Tell(deadlineDue{}) })
}

// rearm arms the timer in place of another.
func (q *deadlines) rearm(ctx *actors.Context) {
	q.stop()
	q.arm(ctx)
}

func (q *deadlines) stop() { clock.Stop(&q.timer) }

// of returns when a watch ends, zero for never.
func (q *deadlines) of(w *watcher.Member) time.Time { return q.queue.key(w).At }

// due ends the watches whose deadline has passed, unless their contexts do. Another timer may have
// been armed since the one that has fired.
func (q *deadlines) due(ctx *actors.Context) {
	defer q.rearm(ctx) // last, since the clock may panic
	now := ctx.Clock().Now()
	for w, deadline, ok := q.queue.first(); ok && !deadline.At.After(now); w, deadline, ok = q.queue.first() {
		q.queue.remove(w)
		if !deadline.ByContext {
			q.d.end(w, watcher.ErrDeadline)
		}
	}
}
