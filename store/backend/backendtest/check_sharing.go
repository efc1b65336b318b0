package backendtest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// sharingChecks check storage that other processes write to.
var sharingChecks = []check{
	{"Contract_WatchWithoutPrevTellsWhatHappened", func(x *fixture) {
		f := x.followBy(backend.WatchOptions{From: x.revision(), NoPrev: true})
		f.noPrev = true
		a := x.create("a", "1")
		a2 := x.update(a, "2")
		gone := x.remove(a2)
		events := f.until(gone.Revision)
		require.Len(x, events, 3)
		require.Equal(x, describe(a), describe(events[0].Object))
		require.Equal(x, describe(a2), describe(events[1].Object))
		require.Equal(x, store.Deleted, events[2].Type)
		require.Equal(x, "a", events[2].Object.Key)
	}},
	{"Contract_OneRevisionIsNeverSplit", func(x *fixture) {
		if x.Transact == nil {
			x.inapplicable(noTransactions)
			return
		}
		start := x.revision()
		many := x.transactMany(25)
		one := x.Transact([]Value{{Key: "t/00", Text: "new"}, {Key: "u", Text: "x"}}, []string{"t/01", "t/02"})
		require.Greater(x, one, many, "each transaction has a revision of its own")
		for _, limit := range []int{1, 2, 10, 25} {
			f := x.follow("", start)
			f.limit = limit
			require.Len(x, f.until(many), 25, "Next(%d)", limit)
			require.Equal(x, []string{"MODIFIED t/00", "DELETED t/01", "DELETED t/02", "ADDED u"}, f.changes(f.until(one)))
			f = x.follow("t", start)
			f.limit = limit
			require.Len(x, f.until(one), 28, "Next(%d) under a prefix", limit)
		}
		require.Equal(x, 24, len(x.list(backend.ListOptions{}).Items))
		require.Equal(x, 25, len(x.list(backend.ListOptions{Revision: many}).Items))
	}},
	{"Contract_ForeignWritesAreWrites", func(x *fixture) {
		if x.Transact == nil {
			x.inapplicable(noTransactions)
			return
		}
		mine := x.create("mine", "1")
		f := x.follow("", mine.Revision)
		theirs := x.Transact([]Value{{Key: "mine", Text: "2"}, {Key: "theirs", Text: "1"}}, nil)
		require.Len(x, f.until(theirs), 2)
		_, err := x.tryPut(draft("mine", "3"), mine, backend.PutOptions{})
		x.fails(err, store.ErrConflict, "an update of what others wrote since")
		now, err := x.Backend.Get(x.ctx, "mine")
		require.NoError(x, err)
		require.Equal(x, theirs, now.Revision)
		require.Equal(x, mine.Created, now.Created, "an update by others creates nothing")
		x.remove(now)
	}},
	{"Contract_SharedStorageIsOne", func(x *fixture) {
		if x.Another == nil {
			x.inapplicable("Harness.Another is nil: the storage cannot be shared")
			return
		}
		require.True(x, x.Backend.Traits().Shared, "storage that others write to must say so")
		other := newFixture(x.T, Harness{Backend: x.Another(), Pass: x.Pass, Patience: x.Patience})
		defer func() { require.NoError(x, other.Backend.Close()) }()
		mine, theirs := x.follow("", x.revision()), other.follow("", x.revision())
		a := x.create("a", "1")
		b := other.create("b", "1")
		a2 := other.update(a, "2")
		want := []event{added(a), added(b), modified(a, a2)}
		mine.sees(want...)
		theirs.sees(want...)
		x.holds(a2, b)
		other.holds(a2, b)
		_, err := x.tryPut(draft("a", "3"), a, backend.PutOptions{})
		x.fails(err, store.ErrConflict, "an update of what another process wrote since")
		require.Equal(x, x.identity(), other.identity(), "one storage has one identity")
	}},
	{"Contract_ListsAndWatchesAreOfTheStorage", func(x *fixture) {
		x.create("a", "1")
		x.create("b", "1")
		w, err := x.Backend.Watch(x.ctx, backend.WatchOptions{Notify: func() {}})
		require.NoError(x, err)
		defer w.Close()
		of, knows := w.(backend.Identifier)
		identifies := x.Backend.Traits().Identifies
		if !knows && !identifies {
			x.inapplicable("neither lists nor watches tell which storage they are of: Traits.Identifies is false")
			return
		}
		id := x.identity()
		if knows {
			got, err := of.StoreID(x.ctx)
			require.NoError(x, err, "StoreID of a watch")
			require.Equal(x, id, got, "a watch is of the storage")
		}
		if !identifies {
			return
		}
		first := x.list(backend.ListOptions{Limit: 1})
		for what, page := range map[string]*backend.List{
			"a first page": first, "a later page": x.list(backend.ListOptions{Continue: first.Continue}),
			"a list at a revision": x.list(backend.ListOptions{Revision: first.Revision}), "a state": x.list(backend.ListOptions{State: true}),
		} {
			require.Equal(x, id, page.StoreID, "%s tells the storage: Traits.Identifies is true", what)
		}
	}},
	{"Contract_ProgressComesOnRequest", func(x *fixture) {
		f := x.follow("mine", x.revision())
		f.drain()
		err := backend.RequestProgress(x.ctx, f.watcher)
		if errors.Is(err, store.ErrUnsupported) {
			x.inapplicable("watches do not take requests for progress")
			return
		}
		require.NoError(x, err)
		newest := x.create("other", "x").Revision
		requested := make(chan error, 1)
		go func() { requested <- backend.RequestProgress(x.ctx, f.watcher) }() // concurrently with Next
		require.Empty(x, f.until(newest), "nothing happened under the prefix")
		require.NoError(x, <-requested)
	}},
}

// noTransactions is why a check of transactions does not apply.
const noTransactions = "Harness.Transact is nil: each revision is one change"

// transactMany creates n objects at one revision.
func (x *fixture) transactMany(n int) store.Revision {
	x.Helper()
	values := make([]Value, n)
	for i := range values {
		values[i] = Value{Key: fmt.Sprintf("t/%02d", i), Text: "x"}
	}
	return x.Transact(values, nil)
}

// changes prints the types and keys of events.
func (f *follower) changes(events []event) []string {
	var changes []string
	for _, ev := range events {
		changes = append(changes, ev.Type.String()+" "+ev.Key())
	}
	return changes
}

// identity returns the storage's identity, "" if it has none.
func (x *fixture) identity() string {
	x.Helper()
	id, err := backend.StoreID(x.ctx, x.Backend)
	if errors.Is(err, store.ErrUnsupported) {
		return ""
	}
	require.NoError(x, err, "StoreID")
	require.NotEmpty(x, id, "StoreID")
	return id
}
