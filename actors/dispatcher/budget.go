package dispatcher

import "time"

const (
	// budgetRate is the time gained per second, a twentieth, as in Kubernetes.
	budgetRate = 50 * time.Millisecond
	// budgetCap bounds the budget to the gain of two seconds.
	budgetCap = 100 * time.Millisecond
)

// budget is the time that all slow watches share. It starts empty, fills at budgetRate
// and holds at most budgetCap. The zero value begins to fill with the first take, for a
// dispatcher whose clock has panicked when it started. It belongs to one goroutine.
type budget struct {
	available time.Duration
	// counted is the time up to which elapsed time has been converted into budget.
	counted time.Time
}

// newBudget makes an empty budget that fills from now on.
func newBudget(now time.Time) budget { return budget{counted: now} }

// take empties the budget and returns its contents. A clock that was set back
// gains nothing by that, and what it gains from then on; one that jumped ahead gains
// at most budgetCap.
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
