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
	agenda *agenda[time.Time]
	timer  clock.Timer
}

func newDeadlines(d *dispatcher) *deadlines {
	return &deadlines{d: d, agenda: newAgenda(time.Time.Before)}
}

func (q *deadlines) add(ctx *actors.Context, w *watcher.Member, at time.Time) {
	q.agenda.add(w, at)
	if first, _, _ := q.agenda.first(); first == w {
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

func (q *deadlines) arm(ctx *actors.Context) {
	q.stop()
	_, at, ok := q.agenda.first()
	if !ok {
		return
	}
	clock := ctx.Clock()
	q.timer = clock.AfterFunc(at.Sub(clock.Now()), func() { q.d.self.Tell(DeadlineDue{}) })
}

func (q *deadlines) stop() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// due ends the watches whose deadline has passed.
func (q *deadlines) due(ctx *actors.Context) {
	now := ctx.Clock().Now()
	for w, at, ok := q.agenda.first(); ok && !at.After(now); w, at, ok = q.agenda.first() {
		q.agenda.remove(w)
		q.d.end(w, watcher.ErrDeadline)
	}
	q.arm(ctx)
}
