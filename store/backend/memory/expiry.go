package memory

import (
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
)

// expiryRun is how many objects are deleted while holding the lock: about a quarter
// of a millisecond for which other calls wait.
const expiryRun = 256

// deleteExpired deletes a run of expired objects, then sets the alarm for the next: at once, if
// more have expired. It does so before it wakes watches, whose code may end the goroutine. If the
// clock fails, the next write sets the alarm.
func (b *Backend) deleteExpired() { waiting.WakeAll(b.deleteSomeExpired()) }

// deleteSomeExpired deletes a run of expired objects and returns the watches to wake.
func (b *Backend) deleteSomeExpired() (woken []*waiting.Follower) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.expire.Rang()
	now, err := expiry.Now(b.clock)
	if err != nil {
		return nil
	}
	for range expiryRun {
		first := b.expiries.Due(now)
		if first == nil {
			break
		}
		_, wake := b.commitDeletion(first.Object, first.Size, now)
		woken = append(woken, wake...)
	}
	b.expire.Set(b.expiries.Earliest(now))
	return woken
}
