package memory

import "github.com/watchmill/watchmill/store/backend/internal/waiting"

// expiryRun is how many objects are deleted while holding the lock: about a quarter
// of a millisecond for which other calls wait.
const expiryRun = 256

// deleteExpired deletes what has expired, then sets the alarm for the next.
func (b *Backend) deleteExpired() {
	for more := true; more; {
		var woken []*waiting.Follower
		b.mu.Lock()
		more = b.deleteSomeExpired(&woken)
		b.mu.Unlock()
		waiting.WakeAll(woken)
	}
}

// deleteSomeExpired deletes a run of expired objects and reports whether there
// may be more. The caller holds the lock.
func (b *Backend) deleteSomeExpired(woken *[]*waiting.Follower) (more bool) {
	if b.closed {
		return false
	}
	b.expire.Rang()
	now := b.clock.Now()
	for range expiryRun {
		first := b.expiries.Due(now)
		if first == nil {
			b.expire.Set(b.expiries.Earliest())
			return false
		}
		_, wake := b.commitDeletion(first.Object, first.Size)
		*woken = append(*woken, wake...)
	}
	return true
}
