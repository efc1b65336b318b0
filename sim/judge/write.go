package judge

import (
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// JudgeWrite judges what the newest change was said to be: kind is [store.Added]
// for a value that was stored, [store.Deleted] or [store.Emitted], and o what the
// write returned. Of an object that was stored before as it is now, nothing is
// changed, and it is returned as it is.
//
// A write that returns no more than a revision says nothing of Created: that is
// zero then.
func (h *History[T]) JudgeWrite(kind store.EventType, o *engine.Object[T]) error {
	want, ok := h.written(kind, o.Key)
	switch {
	case !ok:
		return Failed(Acknowledged, kind.String(), "nothing of the kind was done to %q", o.Key)
	case o.Revision != want.Revision || o.Created != 0 && o.Created != want.Created:
		return Failed(Acknowledged, kind.String(), "it returned %s, done was %s", identity(o), identity(want))
	case !h.equal(o.Value, want.Value):
		return Failed(Acknowledged, kind.String(), "it returned %v of %q, done was %v", o.Value, o.Key, want.Value)
	}
	return nil
}

// written returns what a write of the kind to key returns that has just been
// made.
func (h *History[T]) written(kind store.EventType, key string) (*engine.Object[T], bool) {
	if kind == store.Added {
		v := h.at(key, h.Newest())
		if v.value == nil {
			return nil, false
		}
		return &engine.Object[T]{Key: key, Value: *v.value, Revision: v.since, Created: v.created}, true
	}
	if h.Newest() == First {
		return nil, false
	}
	c := h.change(h.Newest())
	if c.kind != kind || c.key != key {
		return nil, false
	}
	value := c.now
	if kind == store.Deleted {
		value = c.was
	}
	if value == nil {
		return nil, false
	}
	return &engine.Object[T]{Key: key, Value: *value, Revision: h.Newest(), Created: c.created}, true
}
