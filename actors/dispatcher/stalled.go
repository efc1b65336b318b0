package dispatcher

import (
	"iter"
	"time"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// stalled is the set of watchers that have fallen too far behind, by their
// position in the window. Being in it costs a watcher its entry and nobody
// anything else: a position is a number and keeps no event alive.
//
// Everything it returns is in order of position, and at the same position in
// the order in which the watchers came in. It belongs to one goroutine.
type stalled[W any] struct {
	byPosition *btree.BTreeG[*stall[W]]
	adds       uint64
	// counts are the members by policy.
	counts map[watcher.Policy]int
}

// stall is a watcher's entry, kept to move or remove it. The fields are for
// reading.
type stall[W any] struct {
	watcher W
	// position is the first event that it has not had.
	position store.Seq
	policy   watcher.Policy
	// since is when it stalled. Moving does not change it.
	since time.Time

	order uint64
	in    bool
}

func newStalled[W any]() *stalled[W] {
	return &stalled[W]{
		byPosition: btree.NewBTreeGOptions(behind[W], btree.Options{NoLocks: true}),
		counts:     map[watcher.Policy]int{},
	}
}

func behind[W any](a, b *stall[W]) bool {
	if a.position != b.position {
		return a.position < b.position
	}
	return a.order < b.order
}

// add takes in a watcher that stalled at that position.
func (s *stalled[W]) add(w W, position store.Seq, policy watcher.Policy, since time.Time) *stall[W] {
	s.adds++
	m := &stall[W]{watcher: w, position: position, policy: policy, since: since, order: s.adds, in: true}
	s.byPosition.Set(m)
	s.counts[policy]++
	return m
}

// remove lets go of a member. Removing it again does nothing.
func (s *stalled[W]) remove(m *stall[W]) {
	if !m.in {
		return
	}
	s.byPosition.Delete(m)
	m.in = false
	if s.counts[m.policy]--; s.counts[m.policy] == 0 {
		delete(s.counts, m.policy)
	}
}

// move records that a member got as far as position. A position never goes
// back: a smaller one is ignored, as is a member that was removed.
func (s *stalled[W]) move(m *stall[W], position store.Seq) {
	if !m.in || position <= m.position {
		return
	}
	s.byPosition.Delete(m)
	m.position = position
	s.byPosition.Set(m)
}

// len returns the number of members; count that of those with the policy.
func (s *stalled[W]) len() int                   { return s.byPosition.Len() }
func (s *stalled[W]) count(p watcher.Policy) int { return s.counts[p] }

// lowest returns the position of the member that is furthest behind, or false
// if there is none.
func (s *stalled[W]) lowest() (store.Seq, bool) {
	m, ok := s.byPosition.Min()
	if !ok {
		return 0, false
	}
	return m.position, true
}

// expired returns the members whose position is no longer in a window that
// starts at first. They stay members: what becomes of them is up to their
// policies.
func (s *stalled[W]) expired(first store.Seq) []*stall[W] {
	var gone []*stall[W]
	s.byPosition.Scan(func(m *stall[W]) bool {
		if m.position >= first {
			return false
		}
		gone = append(gone, m)
		return true
	})
	return gone
}

// cohorts yields the members in groups that one read of the window serves: from
// the position of the first of a group, those less than reach events ahead of it.
// A reach of zero counts as one: groups share their exact position. The slice is
// valid until the next step; the set must not change until the loop has ended.
func (s *stalled[W]) cohorts(reach uint64) iter.Seq2[store.Seq, []*stall[W]] {
	reach = max(reach, 1)
	return func(yield func(store.Seq, []*stall[W]) bool) {
		var cohort []*stall[W]
		more := true
		s.byPosition.Scan(func(m *stall[W]) bool {
			// Subtracting cannot overflow: positions ascend.
			if len(cohort) > 0 && uint64(m.position-cohort[0].position) >= reach {
				more = yield(cohort[0].position, cohort)
				cohort = cohort[:0]
			}
			cohort = append(cohort, m)
			return more
		})
		if more && len(cohort) > 0 {
			yield(cohort[0].position, cohort)
		}
	}
}

// overdue returns the members with the policy that have been stalled since
// until or longer.
func (s *stalled[W]) overdue(p watcher.Policy, until time.Time) []*stall[W] {
	if s.counts[p] == 0 {
		return nil
	}
	var late []*stall[W]
	s.byPosition.Scan(func(m *stall[W]) bool {
		if m.policy == p && !m.since.After(until) {
			late = append(late, m)
		}
		return true
	})
	return late
}
