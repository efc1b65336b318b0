package judge

import (
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Copy is what a handler of an informer has made of its notifications. The zero
// value has had none.
type Copy[T any] struct {
	// Name is what failures call it.
	Name string
	have map[string]*engine.Object[T]
}

// Apply applies a notification: of which type, with the object of the handler's last
// notification of the key, and the object now. It returns what is wrong with it as a
// [*Failure], nil if nothing is: an object is added exactly if the handler does not
// have it, updated and deleted if it does, from what it has.
func (c *Copy[T]) Apply(kind store.EventType, old, object *engine.Object[T]) error {
	if c.have == nil {
		c.have = map[string]*engine.Object[T]{}
	}
	has := c.have[object.Key]
	switch {
	case (kind == store.Added) != (has == nil):
		return Failed(IsCreate, c.Name, "%v of %s, of which it has %v", kind, identity(object), has)
	case kind == store.Added && old != nil:
		return Failed(PrevValue, c.Name, "%v of %s, with a previous state", kind, identity(object))
	case kind != store.Added && (old == nil || old.Revision != has.Revision):
		return Failed(PrevValue, c.Name, "%v of %s from %v, it was told of %s", kind, identity(object), old, identity(has))
	case kind == store.Modified && has.Created != object.Created:
		return Failed(IsCreate, c.Name, "%v of %s, which is another than %s", kind, identity(object), identity(has))
	}
	if c.have[object.Key] = object; kind == store.Deleted {
		delete(c.have, object.Key)
	}
	return nil
}

// JudgeCopy returns what is wrong with a copy that should be complete up to revision
// rev: it is that state, or notifications are missing.
func (h *History[T]) JudgeCopy(c *Copy[T], rev store.Revision) error {
	objects := make([]*engine.Object[T], 0, len(c.have))
	for _, key := range slices.Sorted(maps.Keys(c.have)) {
		objects = append(objects, c.have[key])
	}
	err := h.JudgeList(Read[T]{Name: c.Name, Mode: Conserved, Oldest: rev, Newest: rev}, func(T) bool { return true }, rev, objects)
	if f, failed := err.(*Failure); failed {
		return Failed(Conserved, c.Name, "after all notifications: %s", f.Problem)
	}
	return err
}

// JudgeSnapshot judges all objects that an informer shows at revision rev. The engine
// learns by a list what it has not seen happening: while an informer works through the
// difference it has what was there at its revision or after it, and objects that were
// replaced later.
func (h *History[T]) JudgeSnapshot(r Read[T], rev store.Revision, objects []*engine.Object[T]) error {
	if h.Witnessed(rev) {
		return h.JudgeList(r, func(T) bool { return true }, rev, objects)
	}
	if rev < r.Oldest || rev > min(r.Newest, h.Newest()) {
		return Failed(r.Mode, r.Name, "it is of revision %d, not from %d to %d", rev, r.Oldest, r.Newest)
	}
	for _, o := range objects {
		if !h.same(o, h.at(o.Key, o.Revision)) || o.Revision > rev {
			return Failed(Genuine, r.Name, "%s was not written at or before %d", identity(o), rev)
		}
	}
	return nil
}
