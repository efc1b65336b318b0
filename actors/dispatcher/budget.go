package dispatcher

import "time"

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
