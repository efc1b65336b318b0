package dispatcher

import (
	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors/watcher"
)

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
