package judge

import (
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Copy is the state to which the notifications of an informer's handler add up. The zero
// value, with Equal set, has received none. It belongs to one goroutine at a time.
type Copy[T any] struct {
	// Name is what failures call it.
	Name string
	// Equal compares values.
	Equal func(a, b T) bool
	have  map[string]*engine.Object[T]
}

// Apply applies a notification of type kind, with the key's old object and its new one. It
// returns a [*Failure] if the notification does not fit the copy: an object is added exactly
// if the handler does not have it, and otherwise updated or deleted, where old is the state
// that the handler has, and the new object is the same one by its creation.
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
	case kind != store.Added && (old == nil || old.Revision != has.Revision || old.Created != has.Created || !c.Equal(old.Value, has.Value)):
		return Failed(PrevValue, c.Name, "%v of %s from %v, it was told of %s", kind, identity(object), old, identity(has))
	case kind != store.Added && has.Created != object.Created:
		return Failed(IsCreate, c.Name, "%v of %s, which is another than %s", kind, identity(object), identity(has))
	}
	c.have[object.Key] = object
	if kind == store.Deleted {
		delete(c.have, object.Key)
	}
	return nil
}

// JudgeNotification returns a [*Failure] if no such object was written: the one that a notification of type
// kind tells of or, for a deletion, the last state. If the handler misses nothing, and the notification is
// an event of the source, which follows says, old must be the state before it.
func (h *History[T]) JudgeNotification(name string, kind store.EventType, old, object *engine.Object[T], follows bool) error {
	if kind != store.Deleted && !h.same(object, h.at(object.Key, object.Revision)) || kind == store.Deleted && !h.was(object) {
		return Failed(Genuine, name, "%v: no such object was written: %v, %s", kind, object.Value, identity(object))
	}
	var told store.Revision
	if old != nil {
		told = old.Revision
	}
	before := h.at(object.Key, object.Revision-1)
	if before.value == nil {
		before.since = 0
	}
	if follows && told != before.since {
		return Failed(Reliable, name, "%v of %s: it was told of %d before, and that at %d is missing", kind, identity(object), told, before.since)
	}
	return nil
}

// was reports whether o, apart from its revision, is a version of its key.
func (h *History[T]) was(o *engine.Object[T]) bool {
	return slices.ContainsFunc(h.versions[o.Key], func(v version[T]) bool {
		return v.value != nil && v.created == o.Created && h.equal(*v.value, o.Value)
	})
}

// JudgeCopy returns a [*Failure] of [Conserved] if the copy is not the state at revision
// rev, so that notifications are missing or wrong.
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

// JudgeSnapshot judges all objects that an informer shows at revision rev: they must be the
// state at rev. If the engine learned of rev by a list, the informer may be in the middle of
// that list's changes and show some objects of before; then each object only has to be one
// that was written at or before rev.
func (h *History[T]) JudgeSnapshot(r Read[T], rev store.Revision, objects []*engine.Object[T]) error {
	if h.Received(rev) {
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
