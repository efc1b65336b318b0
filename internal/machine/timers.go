package machine

import (
	"context"
	"sync/atomic"
	"time"
)

// timerPeriod is how often a timer is set: often enough to see a gap of a few
// milliseconds, and a ten-thousandth of a processor.
const timerPeriod = 5 * time.Millisecond

// Timers measures how late timers come that nothing waits for. A late one means that no
// processor was free: taken by others, or by this program. It is safe for concurrent
// use.
type Timers struct{ latest atomic.Int64 }

// Run sets one timer after another until ctx is done.
func (t *Timers) Run(ctx context.Context) {
	timer := time.NewTimer(timerPeriod)
	defer timer.Stop()
	for due := time.Now().Add(timerPeriod); ; due = time.Now().Add(timerPeriod) {
		select {
		case <-timer.C:
			t.record(time.Since(due))
			timer.Reset(timerPeriod)
		case <-ctx.Done():
			return
		}
	}
}

func (t *Timers) record(late time.Duration) {
	for {
		latest := t.latest.Load()
		if int64(late) <= latest || t.latest.CompareAndSwap(latest, int64(late)) {
			return
		}
	}
}

// Late returns how late the latest timer was since the last call.
func (t *Timers) Late() time.Duration { return time.Duration(t.latest.Swap(0)) }
