package dispatcher

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
)

// slow is the watches that lag beyond their buffer. Those whose policy is Terminate
// share one time budget, and end when it is used up.
type slow struct {
	set *stalled[*watcher.Member]
	// counted is how many of the set the statistics have, which several dispatchers may share.
	counted int64
	// untold are those that this round has called stalled, until OnStall is called.
	untold []*watcher.Member
	budget budget
	timer  clock.Timer
	// drawn is the budget of the running timer, started at since for the watches
	// that had stalled by mark.
	drawn time.Duration
	since time.Time
	mark  uint64
}

// stalled records that w lags beyond its buffer.
func (d *dispatcher) stalled(w *watcher.Member) {
	d.slow.set.add(w, w.Delivered(), w.Policy())
	d.Stats.Stalls.Add(1)
	d.countStalled()
	d.slow.untold = append(d.slow.untold, w)
}

// tellStalls calls OnStall, whose failure must not cost other watches their signals.
func (d *dispatcher) tellStalls() {
	defer func() {
		clear(d.slow.untold)
		d.slow.untold = d.slow.untold[:0]
	}()
	for _, w := range d.slow.untold {
		if d.OnStall != nil {
			d.OnStall(w)
		}
	}
}

// recovered records that w has caught up, unless it has stalled again since it sent
// Recovered: then it will send it again.
func (d *dispatcher) recovered(ctx *actors.Context, w *watcher.Member) {
	if !w.Stalled() && d.slow.set.remove(w) {
		d.countStalled()
		d.slow.giveBack(ctx) // last, since it reads the clock, which may panic
	}
}

// countStalled brings the statistics up to date with the set.
func (d *dispatcher) countStalled() {
	now := int64(d.slow.set.len())
	d.Stats.Stalled.Add(now - d.slow.counted)
	d.slow.counted = now
}

// giveBack returns the rest of the budget if no watch uses it any more.
func (s *slow) giveBack(ctx *actors.Context) {
	if s.set.count(watcher.Terminate) == 0 && s.timer != nil && s.timer.Stop() {
		s.timer = nil
		used := max(ctx.Clock().Now().Sub(s.since), 0) // the clock may have been set back
		s.budget.giveBack(s.drawn - used)
	}
}

// drawBudget takes the budget for the slow watches, unless a draw is running.
func (d *dispatcher) drawBudget(ctx *actors.Context) {
	s := &d.slow
	if s.timer != nil || s.set.count(watcher.Terminate) == 0 {
		return
	}
	s.since, s.mark = ctx.Clock().Now(), s.set.mark()
	s.drawn = s.budget.take(s.since)
	s.timer = ctx.Clock().AfterFunc(s.drawn, func() { d.self.Tell(budgetSpent{}) })
}

// budgetSpent ends the slow watches that have read nothing since the budget was
// drawn for them. Those that have read may draw again. A watch that is still
// reading its initial state does not draw again, and ends after its InitialEnd bookmark, or at
// once if it asked for none.
func (d *dispatcher) budgetSpent() {
	s := &d.slow
	s.timer = nil
	for _, w := range s.set.overdue(watcher.Terminate, s.mark, (*watcher.Member).Delivered) {
		w.EndAfterInitial(watcher.ErrSlowConsumer)
		s.set.remove(w)
		d.wake(w)
	}
	d.countStalled()
}

func (s *slow) stop() { clock.Stop(&s.timer) }
