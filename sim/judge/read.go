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
