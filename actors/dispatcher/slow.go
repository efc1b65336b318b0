package dispatcher

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
)

// slow is the watches that lag beyond their buffer. Those whose policy is
// Terminate draw on one time budget together; nobody waits for them meanwhile.
type slow struct {
	set    *stalled[*watcher.Watch]
	budget budget
	timer  actors.Timer
	// drawn is what the running timer was given, at since, for those who had
	// stalled by mark.
	drawn time.Duration
	since time.Time
	mark  uint64
}

func newSlow(now time.Time) slow {
	return slow{set: newStalled[*watcher.Watch](), budget: newBudget(now)}
}

// stalled notes that w lags beyond its buffer.
func (d *dispatcher) stalled(ctx *actors.Context, w *watcher.Watch) {
	d.slow.set.add(w, w.Delivered(), w.Options().Policy)
	d.Stats.Stalls.Add(1)
	d.countStalled()
}

// recovered notes that w has caught up, unless it has stalled again since it
// said so: then it will say so again.
func (d *dispatcher) recovered(ctx *actors.Context, w *watcher.Watch) {
	if !w.Stalled() {
		d.slow.release(ctx, w)
		d.countStalled()
	}
}

func (d *dispatcher) countStalled() { d.Stats.Stalled.Store(int64(d.slow.set.len())) }

// release lets go of w. What the last of those who drew on the budget has not
// used goes back.
func (s *slow) release(ctx *actors.Context, w *watcher.Watch) {
	if !s.set.remove(w) {
		return
	}
	if s.set.count(watcher.Terminate) == 0 && s.timer != nil && s.timer.Stop() {
		s.timer = nil
		s.budget.giveBack(s.drawn - ctx.Clock().Now().Sub(s.since))
	}
}

// drawBudget gives the slow watches what the budget holds, once at a time.
func (d *dispatcher) drawBudget(ctx *actors.Context) {
	s := &d.slow
	if s.timer != nil || s.set.count(watcher.Terminate) == 0 {
		return
	}
	s.since, s.mark = ctx.Clock().Now(), s.set.mark()
	s.drawn = s.budget.take(s.since)
	s.timer = ctx.Clock().AfterFunc(s.drawn, func() { d.self.Tell(BudgetSpent{}) })
}

// budgetSpent ends the slow watches that have been given nothing since the
// budget was drawn for them. Those that have may draw again. One that may first
// finish its initial state draws no more.
func (d *dispatcher) budgetSpent(ctx *actors.Context) {
	s := &d.slow
	s.timer = nil
	for _, w := range s.set.overdue(watcher.Terminate, s.mark, (*watcher.Watch).Delivered) {
		w.FinishAfterPrelude(watcher.ErrSlowConsumer)
		s.release(ctx, w)
		d.wake(w)
	}
	d.countStalled()
}

func (s *slow) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
