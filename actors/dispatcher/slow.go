package dispatcher

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
)

// slow is the watches that lag beyond their buffer. Those whose policy is
// Terminate draw on one time budget together; nobody waits for them meanwhile.
type slow[T any] struct {
	set     *stalled[*watcher.Watch[T]]
	entries map[*watcher.Watch[T]]*stall[*watcher.Watch[T]]
	budget  budget
	timer   actors.Timer
	// drawn is what the running timer was given, at since.
	drawn time.Duration
	since time.Time
}

func newSlow[T any](now time.Time) slow[T] {
	return slow[T]{
		set:     newStalled[*watcher.Watch[T]](),
		entries: make(map[*watcher.Watch[T]]*stall[*watcher.Watch[T]]),
		budget:  newBudget(now),
	}
}

// stalled notes that w lags beyond its buffer.
func (d *dispatcher[T]) stalled(ctx *actors.Context, w *watcher.Watch[T]) {
	at, _ := w.Position()
	d.slow.entries[w] = d.slow.set.add(w, at, w.Options().Policy, ctx.Clock().Now())
	d.Stats.Stalls.Add(1)
	d.Stats.Stalled.Store(int64(d.slow.set.len()))
}

// recovered notes that w has caught up, or is gone.
func (d *dispatcher[T]) recovered(ctx *actors.Context, w *watcher.Watch[T]) {
	s := &d.slow
	entry, ok := s.entries[w]
	if !ok {
		return
	}
	s.set.remove(entry)
	delete(s.entries, w)
	d.Stats.Stalled.Store(int64(s.set.len()))
	if s.set.count(watcher.Terminate) == 0 && s.timer != nil && s.timer.Stop() {
		s.timer = nil
		s.budget.giveBack(s.drawn - ctx.Clock().Now().Sub(s.since))
	}
}

// drawBudget gives the slow watches what the budget holds, once at a time.
func (d *dispatcher[T]) drawBudget(ctx *actors.Context) {
	s := &d.slow
	if s.timer != nil || s.set.count(watcher.Terminate) == 0 {
		return
	}
	s.since = ctx.Clock().Now()
	s.drawn = s.budget.take(s.since)
	s.timer = ctx.Clock().AfterFunc(s.drawn, func() { d.self.Tell(BudgetSpent[T]{}) })
}

// budgetSpent ends the slow watches that have not moved since the budget was
// drawn for them. Those that have may draw again.
func (d *dispatcher[T]) budgetSpent() {
	s := &d.slow
	s.timer = nil
	for _, m := range s.set.overdue(watcher.Terminate, s.since) {
		at, caughtUp := m.watcher.Position()
		if caughtUp || at != m.position {
			s.set.move(m, at)
			continue
		}
		m.watcher.FinishAfterPrelude(watcher.ErrSlowConsumer)
		d.wake(m.watcher)
	}
}

func (s *slow[T]) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
