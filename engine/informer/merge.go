package informer

import "github.com/watchmill/watchmill/store"

// mergedChanges are the pending changes of a handler that fell behind, merged per
// object from the state that the handler knows to the newest. Objects created and
// deleted meanwhile are left out, so the size is bounded by the objects that the
// handler knows and those that exist.
//
//	fold:  ADD a   MOD b@5→6   ADD c   DEL a   MOD b@6→7   DEL d
//	result:        MOD b@5→7   ADD c                       DEL d
type mergedChanges struct {
	transform *transformer
	byKey     map[string]*mergedChange
	// order is in the order of the first change; a change with nil old and now is
	// one that has been dropped.
	order []*mergedChange
}

// mergedChange is one object: its state as the handler knows it, and its newest.
type mergedChange struct {
	old, now *store.Object // nil: unknown to the handler; gone
	// end is the first deletion among what was folded.
	end   notification
	cause Cause
}

func newMergedChanges(t *transformer) *mergedChanges {
	return &mergedChanges{transform: t, byKey: make(map[string]*mergedChange)}
}

// len returns the number of changed objects.
func (m *mergedChanges) len() int { return len(m.byKey) }

// fold adds notifications, which come in order.
func (m *mergedChanges) fold(notifications []notification) {
	for _, n := range notifications {
		m.add(n)
	}
	if len(m.order) > 2*len(m.byKey)+minCompaction {
		m.compact()
	}
}

// minCompaction is the least number of changes to compact.
const minCompaction = 64

func (m *mergedChanges) add(n notification) {
	c := m.byKey[n.key()]
	if c == nil {
		c = &mergedChange{old: n.Old}
		m.byKey[n.key()] = c
		m.order = append(m.order, c)
	}
	c.cause, c.now = n.Cause, n.Object
	if n.Type == store.Deleted {
		c.now = nil
		if c.end.Object == nil {
			c.end = n
		}
	}
	if c.old == nil && c.now == nil {
		delete(m.byKey, n.key())
	}
}

// compact removes dropped changes from order.
func (m *mergedChanges) compact() {
	kept := make([]*mergedChange, 0, len(m.byKey))
	for _, c := range m.order {
		if c.old != nil || c.now != nil {
			kept = append(kept, c)
		}
	}
	m.order = kept
}

// notifications returns the changes as notifications.
func (m *mergedChanges) notifications() []notification {
	merged := make([]notification, 0, len(m.byKey))
	for _, c := range m.order {
		merged = c.appendTo(merged, m.transform)
	}
	return merged
}

func (c *mergedChange) appendTo(merged []notification, t *transformer) []notification {
	switch {
	case c.old == nil && c.now == nil:
		return merged
	case c.now == nil:
		return append(merged, c.deletion())
	case c.old != nil && c.end.Object != nil && !t.same(c.old, c.now):
		return append(merged, c.deletion(), added(c.now, c.cause))
	}
	return t.appendTransition(merged, pair{c.old, c.now}, c.cause)
}

// deletion returns the first deletion among the changes: that of the object in the
// handler's last notification.
func (c *mergedChange) deletion() notification {
	n := c.end
	n.Old = c.old
	return n
}
