package dispatcher

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
)

// deadlines ends watches at their deadlines, with one timer for the earliest.
type deadlines struct {
	d      *dispatcher
	agenda *agenda[watcher.Deadline]
	timer  clock.Timer
}

func newDeadlines(d *dispatcher) *deadlines {
	earlier := func(a, b watcher.Deadline) bool { return a.At.Before(b.At) }
	return &deadlines{d: d, agenda: newAgenda(earlier)}
}

func (q *deadlines) add(ctx *actors.Context, w *watcher.Member, deadline watcher.Deadline) {
	q.agenda.add(w, deadline)
	if first, _, _ := q.agenda.first(); first == w {
		q.stop()
		q.arm(ctx)
	}
}

// remove removes a watch, if present. The timer may then fire early; without
// watches it is stopped.
func (q *deadlines) remove(w *watcher.Member) {
	q.agenda.remove(w)
	if q.agenda.len() == 0 {
		q.stop()
	}
}

// arm arms the timer for the earliest deadline, if there is one.
func (q *deadlines) arm(ctx *actors.Context) {
	_, deadline, ok := q.agenda.first()
	if q.timer != nil || !ok {
		return
	}
	clock := ctx.Clock()
	q.timer = clock.AfterFunc(deadline.At.Sub(clock.Now()), func() { q.d.self.Tell(DeadlineDue{}) })
}

func (q *deadlines) stop() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// of returns when a watch ends, zero for never.
func (q *deadlines) of(w *watcher.Member) time.Time { return q.agenda.key(w).At }

// due ends the watches whose deadline has passed, unless their contexts do.
func (q *deadlines) due(ctx *actors.Context) {
	q.stop()
	now := ctx.Clock().Now()
	for w, deadline, ok := q.agenda.first(); ok && !deadline.At.After(now); w, deadline, ok = q.agenda.first() {
		q.agenda.remove(w)
		if !deadline.ByContext {
			q.d.end(w, watcher.ErrDeadline)
		}
	}
	q.arm(ctx)
}
