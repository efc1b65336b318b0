package backendtest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// sharingChecks are of storage that others write to, and of what an engine leaves
// to it because it knows better.
var sharingChecks = []check{
	{"Contract_WatchWithoutPrevTellsWhatHappened", func(r *rig) {
		f := r.followBy(backend.WatchOptions{From: r.revision(), NoPrev: true})
		f.noPrev = true
		a := r.create("a", "1")
		a2 := r.update(a, "2")
		gone := r.remove(a2)
		events := f.until(gone.Revision)
		require.Len(r, events, 3)
		require.Equal(r, describe(a), describe(events[0].Object))
		require.Equal(r, describe(a2), describe(events[1].Object))
		require.Equal(r, store.Deleted, events[2].Type)
		require.Equal(r, "a", events[2].Object.Key)
	}},
	{"Contract_OneRevisionIsNeverSplit", func(r *rig) {
		if r.Transact == nil {
			return // each revision is one change
		}
		start := r.revision()
		many := r.transactMany(25)
		one := r.Transact([]Value{{Key: "t/00", Text: "new"}, {Key: "u", Text: "x"}}, []string{"t/01", "t/02"})
		require.Greater(r, one, many, "each transaction has a revision of its own")
		for _, limit := range []int{1, 2, 10, 25} {
			f := r.follow("", start)
			f.max = limit
			require.Len(r, f.until(many), 25, "Next(%d)", limit)
			require.Equal(r, []string{"MODIFIED t/00", "DELETED t/01", "DELETED t/02", "ADDED u"}, f.changes(f.until(one)))
			f = r.follow("t", start)
			f.max = limit
			require.Len(r, f.until(one), 28, "Next(%d) under a prefix", limit)
		}
		require.Equal(r, 24, len(r.list(backend.ListOptions{}).Items))
		require.Equal(r, 25, len(r.list(backend.ListOptions{Revision: many}).Items))
	}},
	{"Contract_ForeignWritesAreWrites", func(r *rig) {
		if r.Transact == nil {
			return
		}
		mine := r.create("mine", "1")
		f := r.follow("", mine.Revision)
		theirs := r.Transact([]Value{{Key: "mine", Text: "2"}, {Key: "theirs", Text: "1"}}, nil)
		require.Len(r, f.until(theirs), 2)
		_, err := r.tryPut(draft("mine", "3"), mine, backend.PutOptions{})
		r.fails(err, store.ErrConflict, "an update of what others wrote since")
		now, err := r.Backend.Get(r.ctx, "mine")
		require.NoError(r, err)
		require.Equal(r, theirs, now.Revision)
		require.Equal(r, mine.Created, now.Created, "an update by others creates nothing")
		r.remove(now)
	}},
	{"Contract_SharedStorageIsOne", func(r *rig) {
		if r.Another == nil {
			return // it is not shared
		}
		require.True(r, r.Backend.Traits().Shared, "storage that others write to must say so")
		other := newRig(r.T, Harness{Backend: r.Another(), Pass: r.Pass, Patience: r.Patience})
		defer func() { require.NoError(r, other.Backend.Close()) }()
		mine, theirs := r.follow("", r.revision()), other.follow("", r.revision())
		a := r.create("a", "1")
		b := other.create("b", "1")
		a2 := other.update(a, "2")
		want := []event{added(a), added(b), modified(a, a2)}
		mine.sees(want...)
		theirs.sees(want...)
		r.holds(a2, b)
		other.holds(a2, b)
		_, err := r.tryPut(draft("a", "3"), a, backend.PutOptions{})
		r.fails(err, store.ErrConflict, "an update of what another process wrote since")
		require.Equal(r, r.identity(), other.identity(), "one storage has one identity")
	}},
	{"Contract_ProgressComesOnRequest", func(r *rig) {
		f := r.follow("mine", r.revision())
		f.drain()
		err := backend.RequestProgress(r.ctx, f.watcher)
		if errors.Is(err, store.ErrUnsupported) {
			return // revisions do not move without a batch
		}
		require.NoError(r, err)
		newest := r.create("other", "x").Revision
		require.NoError(r, backend.RequestProgress(r.ctx, f.watcher))
		require.Empty(r, f.until(newest), "nothing happened under the prefix")
	}},
}

// transactMany creates n objects at one revision.
func (r *rig) transactMany(n int) store.Revision {
	r.Helper()
	values := make([]Value, n)
	for i := range values {
		values[i] = Value{Key: fmt.Sprintf("t/%02d", i), Text: "x"}
	}
	return r.Transact(values, nil)
}

// changes prints the types and keys of events.
func (f *follower) changes(events []event) []string {
	var changes []string
	for _, ev := range events {
		changes = append(changes, ev.Type.String()+" "+ev.Key())
	}
	return changes
}

// identity returns what identifies the storage, "" if it has no identity.
func (r *rig) identity() string {
	r.Helper()
	id, err := backend.StoreID(r.ctx, r.Backend)
	if errors.Is(err, store.ErrUnsupported) {
		return ""
	}
	require.NoError(r, err, "StoreID")
	require.NotEmpty(r, id, "StoreID")
	return id
}
