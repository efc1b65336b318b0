package memory

import (
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
)

// expiryRun is how many objects are deleted while holding the lock: about a quarter
// of a millisecond for which other calls wait.
const expiryRun = 256

// deleteExpired deletes what has expired, then sets the alarm for the next. If the clock
// fails, the next write sets the alarm.
func (b *Backend) deleteExpired() {
	for more := true; more; {
		var woken []*waiting.Follower
		more = b.deleteSomeExpired(&woken)
		waiting.WakeAll(woken)
	}
}

// deleteSomeExpired deletes a run of expired objects and reports whether there
// may be more.
func (b *Backend) deleteSomeExpired(woken *[]*waiting.Follower) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.expire.Rang()
	now, err := expiry.Now(b.clock)
	if err != nil {
		return false
	}
	for range expiryRun {
		first := b.expiries.Due(now)
		if first == nil {
			b.expire.Set(b.expiries.Earliest(now))
			return false
		}
		_, wake := b.commitDeletion(first.Object, first.Size, now)
		*woken = append(*woken, wake...)
	}
	return true
}
