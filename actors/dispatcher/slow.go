package dispatcher

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
)

// slow is the watches that lag beyond their buffer. Those whose policy is
// Terminate draw on one time budget together; nobody waits for them meanwhile.
type slow struct {
	set    *stalled[*watcher.Member]
	budget budget
	timer  actors.Timer
	// drawn is what the running timer was given, at since, for those who had
	// stalled by mark.
	drawn time.Duration
	since time.Time
	mark  uint64
}

func newSlow(now time.Time) slow {
	return slow{set: newStalled[*watcher.Member](), budget: newBudget(now)}
}

// stalled notes that w lags beyond its buffer.
func (d *dispatcher) stalled(w *watcher.Member) {
	d.slow.set.add(w, w.Delivered(), w.Policy())
	d.Stats.Stalls.Add(1)
	d.countStalled()
	if d.OnStall != nil {
		d.OnStall(w)
	}
}

// recovered notes that w has caught up, unless it has stalled again since it
// said so: then it will say so again.
func (d *dispatcher) recovered(ctx *actors.Context, w *watcher.Member) {
	if !w.Stalled() {
		d.slow.release(ctx, w)
		d.countStalled()
	}
}

func (d *dispatcher) countStalled() { d.Stats.Stalled.Store(int64(d.slow.set.len())) }

// release lets go of w. What the last of those who drew on the budget has not
// used goes back.
func (s *slow) release(ctx *actors.Context, w *watcher.Member) {
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
	for _, w := range s.set.overdue(watcher.Terminate, s.mark, (*watcher.Member).Delivered) {
		w.EndAfterInitial(watcher.ErrSlowConsumer)
		s.release(ctx, w)
		d.rouse(w)
	}
	d.countStalled()
}

func (s *slow) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// stalled is the set of watchers that lag beyond their buffer, in the order in
// which they came in. Being in it costs a watcher its entry and nobody anything
// else. It belongs to one goroutine.
type stalled[W comparable] struct {
	entries map[W]*stall[W]
	byOrder *btree.BTreeG[*stall[W]]
	adds    uint64
	// counts are the members by policy.
	counts map[watcher.Policy]int
}

// stall is a watcher's entry.
type stall[W any] struct {
	watcher W
	policy  watcher.Policy
	// taken is how much it had been given when that was last looked at.
	taken uint64
	// order counts the stalls up to its own.
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

// add takes in a watcher that has been given so much so far. One that is in
// stalls anew: it goes behind the others.
func (s *stalled[W]) add(w W, taken uint64, policy watcher.Policy) {
	s.remove(w)
	s.adds++
	m := &stall[W]{watcher: w, policy: policy, taken: taken, order: s.adds}
	s.entries[w] = m
	s.byOrder.Set(m)
	s.counts[policy]++
}

// remove lets go of a watcher, and reports whether it was in.
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

// mark stands for now among the stalls. It is no time: a clock may be set back.
func (s *stalled[W]) mark() uint64 { return s.adds }

// overdue returns the members with the policy that stalled before the mark and
// have been given nothing since they were last looked at. How much each has been
// given by now, taken tells.
func (s *stalled[W]) overdue(p watcher.Policy, mark uint64, taken func(W) uint64) []W {
	if s.counts[p] == 0 {
		return nil
	}
	var late []W
	s.byOrder.Scan(func(m *stall[W]) bool {
		if m.policy != p || m.order > mark {
			return true
		}
		if now := taken(m.watcher); now != m.taken {
			m.taken = now
		} else {
			late = append(late, m.watcher)
		}
		return true
	})
	return late
}

const (
	// budgetRate is the time gained per second: slow watchers may cost the
	// dispatcher a twentieth of its time at most.
	budgetRate = 50 * time.Millisecond
	// budgetCap is the most that is saved up: what two seconds bring.
	budgetCap = 100 * time.Millisecond
)

// budget is the time that all slow watchers together are allowed. It starts
// empty, fills at budgetRate and holds at most budgetCap. The zero value begins
// to fill with the first take. It belongs to one goroutine.
type budget struct {
	available time.Duration
	// counted is the moment up to which the time that passed has been turned
	// into budget.
	counted time.Time
}

// newBudget makes an empty budget that fills from now on.
func newBudget(now time.Time) budget { return budget{counted: now} }

// take empties the budget and returns what was in it. A clock that was set back
// gains nothing until it moves on; one that leapt ahead gains no more than
// budgetCap.
func (b *budget) take(now time.Time) time.Duration {
	b.refill(now)
	taken := b.available
	b.available = 0
	return taken
}

// giveBack returns what was taken and not used. A negative duration is ignored.
func (b *budget) giveBack(unused time.Duration) {
	b.available = min(b.available+min(max(unused, 0), budgetCap), budgetCap)
}

func (b *budget) refill(now time.Time) {
	const price = time.Second / budgetRate // how much time must pass to gain one unit of it
	if b.counted.IsZero() {
		b.counted = now
	}
	gained := now.Sub(b.counted) / price
	// Up to what was turned into budget, on or back: the remainder counts next
	// time.
	b.counted = b.counted.Add(gained * price)
	b.giveBack(gained)
}
