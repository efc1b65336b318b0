package dispatcher

import (
	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors/watcher"
)

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
