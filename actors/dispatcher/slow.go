package dispatcher

import (
	"time"

	"github.com/tidwall/btree"

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
	if !w.Stalled() {
		d.release(ctx, w)
	}
}

// release records that w is slow no more. The clock, which may be the user's and panic,
// is read last.
func (d *dispatcher) release(ctx *actors.Context, w *watcher.Member) {
	if d.slow.set.remove(w) {
		d.countStalled()
		d.slow.giveBack(ctx)
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
		s.budget.giveBack(s.drawn - ctx.Clock().Now().Sub(s.since))
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
// reading its initial state does not draw again.
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

func (s *slow) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// stalled is the set of watches that lag beyond their buffer, in the order in which
// they stalled. It belongs to one goroutine.
type stalled[W comparable] struct {
	entries map[W]*stall[W]
	byOrder *btree.BTreeG[*stall[W]]
	adds    uint64
	// counts are the members by policy.
	counts map[watcher.Policy]int
}

// stall is a watch's entry.
type stall[W any] struct {
	watch  W
	policy watcher.Policy
	// taken is how much the watch had read at the last check.
	taken uint64
	// order is the number of the stall.
	order uint64
}

func newStalled[W comparable]() *stalled[W] {
	earlier := func(a, b *stall[W]) bool { return a.order < b.order }
	return &stalled[W]{
		entries: map[W]*stall[W]{},
		byOrder: btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true}),
		counts:  map[watcher.Policy]int{},
	}
}

// add adds a watch that has read taken so far. A watch that is present moves to the
// end.
func (s *stalled[W]) add(w W, taken uint64, policy watcher.Policy) {
	s.remove(w)
	s.adds++
	m := &stall[W]{watch: w, policy: policy, taken: taken, order: s.adds}
	s.entries[w] = m
	s.byOrder.Set(m)
	s.counts[policy]++
}

// remove removes a watch, and reports whether it was present.
func (s *stalled[W]) remove(w W) bool {
	m, ok := s.entries[w]
	if !ok {
		return false
	}
	delete(s.entries, w)
	s.byOrder.Delete(m)
	s.counts[m.policy]--
	return true
}

// len returns the number of members; count that of those with the policy.
func (s *stalled[W]) len() int                   { return s.byOrder.Len() }
func (s *stalled[W]) count(p watcher.Policy) int { return s.counts[p] }

// mark returns the number of the last stall, which unlike a clock never goes back.
func (s *stalled[W]) mark() uint64 { return s.adds }

// overdue returns the members with the policy that stalled before the mark and have
// read nothing since the last check. taken returns how much a member has read.
func (s *stalled[W]) overdue(p watcher.Policy, mark uint64, taken func(W) uint64) []W {
	if s.counts[p] == 0 {
		return nil
	}
	var late []W
	s.byOrder.Scan(func(m *stall[W]) bool {
		if m.policy != p || m.order > mark {
			return true
		}
		if now := taken(m.watch); now != m.taken {
			m.taken = now
		} else {
			late = append(late, m.watch)
		}
		return true
	})
	return late
}

const (
	// budgetRate is the time gained per second, a twentieth, as in Kubernetes.
	budgetRate = 50 * time.Millisecond
	// budgetCap bounds the budget to the gain of two seconds.
	budgetCap = 100 * time.Millisecond
)

// budget is the time that all slow watches share. It starts
// empty, fills at budgetRate and holds at most budgetCap. The zero value begins
// to fill with the first take. It belongs to one goroutine.
type budget struct {
	available time.Duration
	// counted is the time up to which elapsed time has been converted
	// into budget.
	counted time.Time
}

// newBudget makes an empty budget that fills from now on.
func newBudget(now time.Time) budget { return budget{counted: now} }

// take empties the budget and returns its contents. A clock that was set back
// gains nothing until it has caught up; one that jumped ahead gains at most
// budgetCap.
func (b *budget) take(now time.Time) time.Duration {
	b.refill(now)
	taken := b.available
	b.available = 0
	return taken
}

// giveBack returns the unused part of a take. A negative duration is ignored.
func (b *budget) giveBack(unused time.Duration) {
	b.available = min(b.available+min(max(unused, 0), budgetCap), budgetCap)
}

func (b *budget) refill(now time.Time) {
	const price = time.Second / budgetRate // elapsed time per unit of budget
	if b.counted.IsZero() {
		b.counted = now
	}
	gained := now.Sub(b.counted) / price
	// Advance only by what was converted into budget: the remainder counts next
	// time.
	b.counted = b.counted.Add(gained * price)
	b.giveBack(gained)
}
