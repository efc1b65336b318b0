package memory

import (
	"time"

	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
)

// expiryRun is how many objects are deleted while holding the lock: about a quarter
// of a millisecond for which other calls wait.
const expiryRun = 256

// deleteExpired deletes a run of expired objects, then sets the alarm for the next: at once, if
// more have expired. It does so before it wakes watches, whose code may end the goroutine. If the
// clock fails, or user code ends the goroutine, the next write sets the alarm.
func (b *Backend) deleteExpired() {
	var woken []*waiting.Follower
	defer func() { waiting.WakeAll(woken) }() // including those of deletions before one that ends the goroutine
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.expire.Rang()
	now, err := expiry.Now(b.clock)
	if err != nil {
		return
	}
	expired := b.expiries.Expired(now, expiryRun)
	for _, e := range expired {
		b.commitDeletion(e.Object, e.Size, now)
		woken = append(woken, b.waiting.Take()...)
	}
	b.setAlarms(len(expired), now)
}

// setAlarms sets the alarms after that many changes of objects. The caller holds the lock.
func (b *Backend) setAlarms(changes int, now time.Time) {
	if changes > 0 {
		b.trimLater(now)
	}
	b.expire.SetTo(b.expiries, now)
}
