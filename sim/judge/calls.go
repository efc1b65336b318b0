package judge

import (
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Read describes a read and bounds the revisions that it may show.
type Read[T any] struct {
	// Name is what failures call the read.
	Name string
	// Mode is the invariant that the read breaks if it shows none of the revisions from
	// Oldest to Newest: [ReadLatest], [ReadCached], [ReadNotOlder] or [ReadExact].
	Mode           Invariant
	Oldest, Newest store.Revision
}

// JudgeGet returns a [*Failure] if o, the result of reading key, was not under key at any
// revision that the read may show. A nil o means that the read found no object.
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

// JudgeList returns a [*Failure] if the objects, all pages of a list at revision rev, are not
// the selected state at rev in key order, or if the read may not show that revision.
func (h *History[T]) JudgeList(r Read[T], selects func(T) bool, rev store.Revision, objects []*engine.Object[T]) error {
	if rev < r.Oldest || rev > min(r.Newest, h.Newest()) {
		return Failed(r.Mode, r.Name, "it is of revision %d, not from %d to %d", rev, r.Oldest, r.Newest)
	}
	var keys []string
	have := State{}
	for _, o := range objects {
		switch v := h.at(o.Key, rev); {
		case v.value == nil || !h.equal(*v.value, o.Value):
			return Failed(ReadState, r.Name, "%q is not %v at %d", o.Key, o.Value, rev)
		case o.Created != v.created:
			return Failed(ReadState, r.Name, "%s, but it was at %d", identity(o), v.created)
		case o.Revision == v.since && !v.dates(o):
			return Failed(ReadState, r.Name, "%s, is %s, not written at %v, expires at %v", identity(o), times(o), v.written, v.expires)
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

// JudgeWrite returns a [*Failure] if o, the object that a write returned, is not what the
// write did. Call it right after the write: kind is [store.Added] for a value that was
// stored, [store.Deleted] or [store.Emitted]. A write of an equal value changes nothing
// and must return the stored object.
//
// An emission returns only a revision: its Created is not judged if it is zero.
func (h *History[T]) JudgeWrite(kind store.EventType, o *engine.Object[T]) error {
	want, ok := h.written(kind, o.Key)
	switch {
	case !ok:
		return Failed(Acknowledged, kind.String(), "nothing of the kind was done to %q", o.Key)
	case o.Revision != want.Revision || o.Created != want.Created && (kind != store.Emitted || o.Created != 0):
		return Failed(Acknowledged, kind.String(), "it returned %s, done was %s", identity(o), identity(want))
	case !h.equal(o.Value, want.Value):
		return Failed(Acknowledged, kind.String(), "it returned %v of %q, done was %v", o.Value, o.Key, want.Value)
	}
	return nil
}

// written returns the object that a write of the kind to key, which has just been made, must
// return; false if the newest change is no such write.
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

// Figures are an engine's own counts of its watches.
type Figures struct {
	// Living is the number of open watches.
	Living int64
	// SlowConsumers, Deadlines, Panics and Expired are the numbers of watches that ended
	// for these reasons. Expired may include watches that the window had moved past, but
	// which ended for another reason before their consumers learned of that.
	SlowConsumers, Deadlines, Panics, Expired uint64
}

// JudgeFigures returns a [*Failure] if an engine's figures do not agree with the ends of all
// its watches, which are nil for open ones.
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

// JudgeLeft returns a [*Failure] if an engine has left actors or timers behind after Close.
// The names are those of the actors.
func JudgeLeft(actors, timers int, names []string) error {
	if actors != 0 || timers != 0 {
		return Failed(NothingLeft, "", "%d actors and %d timers are left: %v", actors, timers, names)
	}
	return nil
}
