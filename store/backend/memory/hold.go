package memory

import (
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/window"
)

// A cache lists the state and then watches from the list's revision. In between, writers
// may exceed Options.Retain many times, and if the watch were refused for that, the cache
// would list again after a pause, for as long as the writers are that fast. So the list
// holds the history for its watch:
//
//	List with State ──▶ hold{revision} ──▶ Watch with State from there: holds it from then on
//	                         └──▶ no watch for holdTime: dropped
type hold struct {
	revision store.Revision
	at       window.Seq
	until    time.Time
}

const (
	// holdTime is how long a hold waits for its watch: much longer than a cache takes to
	// apply a list, while the workers are busy.
	holdTime = 10 * time.Second
	// maxHolds bounds the holds, since each costs every write a comparison.
	maxHolds = 8
)

// listShared returns the newest snapshot for a list with State, and holds the history after
// the revision that is listed.
func (b *Backend) listShared(scan backend.Scan) (*snapshot, error) {
	now, err := expiry.Now(b.clock)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.snapshotLocked()
	if err != nil || scan.Check(s.oldest, s.Revision) != nil {
		return s, err
	}
	rev := scan.Revision
	if rev == 0 {
		rev = s.Revision
	}
	at, err := s.Window.Seek(rev)
	if err != nil {
		return nil, err
	}
	b.holds = slices.DeleteFunc(b.holds, func(h hold) bool { return h.revision == rev })
	b.holds = append(b.holds, hold{revision: rev, at: at, until: now.Add(holdTime)})
	b.holds = b.holds[max(0, len(b.holds)-maxHolds):]
	return s, nil
}

// takeOver drops the holds that a watch from rev makes unnecessary, including those at later
// revisions, since a cache that begins with a past state has listed the newest before. If
// that was another cache's, it lists again should its history be gone. The caller holds the
// lock.
func (b *Backend) takeOver(rev store.Revision) {
	b.holds = slices.DeleteFunc(b.holds, func(h hold) bool { return h.revision >= rev })
}

// expireHolds drops the holds whose watch has not come by now. The caller holds the lock.
func (b *Backend) expireHolds(now time.Time) {
	if len(b.holds) > 0 {
		b.holds = slices.DeleteFunc(b.holds, func(h hold) bool { return !now.Before(h.until) })
	}
}
