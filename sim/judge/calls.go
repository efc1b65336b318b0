package judge

import (
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Read is what a read returned, and what it may have.
type Read[T any] struct {
	// Name is what failures call the read.
	Name string
	// Mode is what it breaks if it is of none of the revisions from Oldest to
	// Newest: [ReadLatest], [ReadCached], [ReadNotOlder] or [ReadExact].
	Mode           Invariant
	Oldest, Newest store.Revision
}

// JudgeGet judges a get of the object under key; nil if there was none.
func (h *History[T]) JudgeGet(r Read[T], key string, o *engine.Object[T]) error {
	for rev := max(r.Oldest, First); rev <= min(r.Newest, h.Newest()); rev++ {
		v := h.at(key, rev)
		if (v.value != nil) == (o != nil) && (o == nil || h.same(o, v)) {
			return nil
		}
	}
	if o == nil {
		return Failed(r.Mode, r.Name, "%q is there at all revisions from %d to %d", key, r.Oldest, r.Newest)
	}
	return Failed(r.Mode, r.Name, "%q as of %d is not there at any revision from %d to %d", key, o.Revision, r.Oldest, r.Newest)
}

// JudgeList judges a whole list of what a selection shows, at revision rev.
func (h *History[T]) JudgeList(r Read[T], selects func(T) bool, rev store.Revision, objects []*engine.Object[T]) error {
	if rev < r.Oldest || rev > min(r.Newest, h.Newest()) {
		return Failed(r.Mode, r.Name, "it is of revision %d, not from %d to %d", rev, r.Oldest, r.Newest)
	}
	var keys []string
	have := State{}
	for _, o := range objects {
		if v := h.at(o.Key, rev); v.value == nil || !h.equal(*v.value, o.Value) {
			return Failed(ReadState, r.Name, "%q is not %v at %d", o.Key, o.Value, rev)
		} else if o.Created != v.created {
			return Failed(ReadState, r.Name, "%s, but it was at %d", identity(o), v.created)
		}
		keys, have[o.Key] = append(keys, o.Key), o.Revision
	}
	if want := h.State(rev, selects); !maps.Equal(want, have) {
		return Failed(ReadState, r.Name, "it shows %v, the state at %d is %v", have, rev, want)
	}
	if !slices.IsSorted(keys) || len(keys) != len(have) {
		return Failed(ReadState, r.Name, "its keys are not in order: %v", keys)
	}
	return nil
}

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

// Figures is what an engine says of its watches.
type Figures struct {
	// Living is how many there are.
	Living int64
	// SlowConsumers, Deadlines, Panics and Expired are how many ended for that.
	// Expired may count more: watches that the window had overrun, but which
	// ended for something else before their consumer got there.
	SlowConsumers, Deadlines, Panics, Expired uint64
}

// JudgeFigures compares an engine's figures with the ends of all its watches,
// nil for those that live.
func JudgeFigures(f Figures, ends []error) error {
	var living int64
	count := map[error]uint64{}
	for _, end := range ends {
		if end == nil {
			living++
		} else {
			count[Reason(end)]++
		}
	}
	gone := uint64(len(ends)) - uint64(living)
	switch {
	case f.Living != living:
		return Failed(Conserved, "", "the engine counts %d watches, %d live", f.Living, living)
	case f.SlowConsumers != count[engine.ErrSlowConsumer]:
		return Failed(Conserved, "", "the engine counts %d slow consumers, %d were told", f.SlowConsumers, count[engine.ErrSlowConsumer])
	case f.Deadlines != count[engine.ErrDeadline]:
		return Failed(Conserved, "", "the engine counts %d deadlines, %d were told", f.Deadlines, count[engine.ErrDeadline])
	case f.Panics != count[engine.ErrHandlerPanic]:
		return Failed(Conserved, "", "the engine counts %d panics, %d were told", f.Panics, count[engine.ErrHandlerPanic])
	case f.Expired < count[engine.ErrExpired] || f.Expired > gone:
		return Failed(Conserved, "", "the engine counts %d expired, %d were told, %d ended", f.Expired, count[engine.ErrExpired], gone)
	}
	return nil
}

// JudgeLeft says what an engine has left behind after its Close.
func JudgeLeft(actors, timers int, names []string) error {
	if actors != 0 || timers != 0 {
		return Failed(NothingLeft, "", "%d actors and %d timers are left: %v", actors, timers, names)
	}
	return nil
}
