package dispatcher

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// slow is the stalled watches whose policy is Terminate. They draw on one
// budget together; nobody waits for them meanwhile.
type slow[T any] struct {
	budget  budget
	members []slowMember[T]
	timer   actors.Timer
	// drawn is what the running timer was given, at since.
	drawn time.Duration
	since time.Time
}

type slowMember[T any] struct {
	watch *watcher.Watch[T]
	// at is where the watch stood when the respite began.
	at store.Seq
}

// stalled notes that w lags beyond its buffer.
func (d *dispatcher[T]) stalled(w *watcher.Watch[T]) {
	d.Stats.Stalls.Add(1)
	d.Stats.Stalled.Add(1)
	if w.Options().Policy != watcher.Terminate {
		return
	}
	at, _ := w.Position()
	d.slow.members = append(d.slow.members, slowMember[T]{watch: w, at: at})
}

// recovered notes that w has caught up.
func (d *dispatcher[T]) recovered(ctx *actors.Context, w *watcher.Watch[T]) {
	if w.Ended() {
		return
	}
	d.Stats.Stalled.Add(-1)
	d.slow.remove(ctx, w)
}

// drawBudget gives the slow watches what the budget holds, once at a time.
func (d *dispatcher[T]) drawBudget(ctx *actors.Context) {
	s := &d.slow
	if len(s.members) == 0 || s.timer != nil {
		return
	}
	s.since = ctx.Clock().Now()
	s.drawn = s.budget.take(s.since)
	s.timer = ctx.Clock().AfterFunc(s.drawn, func() { d.self.Tell(BudgetSpent[T]{}) })
}

// budgetSpent ends the slow watches that have not moved since the budget was
// drawn. Those that have may draw again.
func (d *dispatcher[T]) budgetSpent(ctx *actors.Context) {
	s := &d.slow
	s.timer = nil
	kept := s.members[:0]
	for _, m := range s.members {
		at, caughtUp := m.watch.Position()
		switch {
		case caughtUp:
		case at == m.at:
			m.watch.FinishAfterPrelude(watcher.ErrSlowConsumer)
			d.wake(m.watch)
		default:
			kept = append(kept, slowMember[T]{watch: m.watch, at: at})
		}
	}
	clear(s.members[len(kept):])
	s.members = kept
	d.drawBudget(ctx)
}

// remove takes w out. When the last one is gone, what is left of the budget
// goes back.
func (s *slow[T]) remove(ctx *actors.Context, w *watcher.Watch[T]) {
	for i, m := range s.members {
		if m.watch == w {
			s.members = append(s.members[:i], s.members[i+1:]...)
			break
		}
	}
	if len(s.members) == 0 && s.timer != nil && s.timer.Stop() {
		s.timer = nil
		s.budget.giveBack(s.drawn - ctx.Clock().Now().Sub(s.since))
	}
}

func (s *slow[T]) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
