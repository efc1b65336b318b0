package backendtest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// restartChecks check storage that outlives the process.
var restartChecks = []check{
	{"Restart_KeepsStateAndRevision", func(x *fixture) {
		if !x.restarts() {
			return
		}
		a := x.create("a", "1")
		b := x.update(x.create("b", "1"), "2")
		c := x.putFor(time.Hour, "c", "1", nil)
		gone := x.remove(x.create("d", "1"))
		id := x.identity()
		x.restart(0)
		x.holds(a, b, c)
		require.GreaterOrEqual(x, x.revision(), gone.Revision, "revisions never go back")
		require.Greater(x, x.create("d", "2").Revision, gone.Revision, "a revision is never used twice")
		require.Equal(x, id, x.identity(), "it is the same storage")
		_, err := x.tryPut(draft("b", "3"), a, backend.PutOptions{})
		x.fails(err, store.ErrConflict, "an update over another revision")
		x.update(b, "3")
	}},
	{"Restart_ResumesFromEveryRevision", func(x *fixture) {
		if !x.restarts() {
			return
		}
		start := x.revision()
		x.mixture(1, 40)
		told := x.follow("", start).until(x.revision())
		x.restart(time.Minute)
		x.mixture(2, 10)
		later := x.follow("", told[len(told)-1].Revision).until(x.revision())
		const prefix = "m/1"
		for i := range told {
			from := start
			if i > 0 {
				from = told[i-1].Revision
			}
			f := x.follow("", from)
			f.limit = 1 + i%7
			require.Equal(x, append(texts(told[i:]), texts(later)...), texts(f.until(x.revision())), "a watch from revision %d", from)
			f.watcher.Close()
			f = x.follow(prefix, from)
			f.sees(under(prefix, slices.Concat(told[i:], later))...)
			f.watcher.Close()
		}
	}},
	{"Restart_ListsEveryRevision", func(x *fixture) {
		if !x.restarts() {
			return
		}
		x.mixture(1, 30)
		from, states := x.revision(), map[store.Revision][]string{}
		x.mixture(2, 20)
		for _, ev := range x.follow("", from).until(x.revision()) {
			states[ev.Revision] = describeAll(x.list(backend.ListOptions{Revision: ev.Revision}).Items)
		}
		x.restart(0)
		for at, want := range states {
			require.Equal(x, want, describeAll(x.list(backend.ListOptions{Revision: at}).Items), "the state at %d", at)
		}
	}},
	{"Restart_KeepsWhatWasCompacted", func(x *fixture) {
		if !x.restarts() {
			return
		}
		a := x.create("a", "1")
		a2 := x.update(a, "2")
		gone := x.remove(a2)
		x.compact(a2.Revision)
		x.restart(0)
		require.Equal(x, a2.Revision, x.compacted())
		_, err := x.Backend.Watch(x.ctx, backend.WatchOptions{From: a.Revision, Notify: func() {}})
		x.fails(err, store.ErrExpired, "a watch from before the compaction")
		x.follow("", a2.Revision).sees(deleted(a2, gone))
		x.compact(gone.Revision)
		x.restart(0)
		require.GreaterOrEqual(x, x.revision(), gone.Revision, "the newest revision outlives all that had one")
	}},
	{"Restart_DeletesWhatExpiresMeanwhile", func(x *fixture) {
		if !x.restarts() || !x.hasTTLs() {
			return
		}
		kept := x.create("kept", "x")
		brief := x.putFor(2*time.Second, "brief", "x", nil)
		x.restart(3*time.Second + x.TTLSlack)
		f := x.follow("", brief.Revision)
		x.deletedNext(f, brief)
		x.holds(kept)
	}},
	{"Restart_DeletesWhatExpiresAfterIt", func(x *fixture) {
		if !x.restarts() || !x.hasTTLs() {
			return
		}
		kept := x.create("kept", "x")
		brief := x.putFor(x.shortTTL(), "brief", "x", nil)
		x.restart(0)
		f := x.follow("", brief.Revision)
		x.Pass(x.shortTTL() + x.TTLSlack + time.Second)
		x.deletedNext(f, brief)
		x.holds(kept)
	}},
}

// restarts reports whether storage outlives the process, and checks that the backend's
// traits agree with the harness.
func (x *fixture) restarts() bool {
	x.Helper()
	keeps := x.Backend.Traits().KeepsHistory
	require.Equal(x, x.Reopen != nil, keeps, "Traits.KeepsHistory, and whether the harness can reopen the storage")
	return keeps || x.inapplicable("the storage does not outlive the process: Traits.KeepsHistory is false")
}

// under returns the events of keys under a prefix.
func under(prefix string, events []event) []event {
	return slices.DeleteFunc(slices.Clone(events), func(ev event) bool { return !store.HasPrefix(ev.Key(), prefix) })
}

// restart closes the backend and opens its storage again.
func (x *fixture) restart(down time.Duration) {
	x.Helper()
	x.Backend = x.Reopen(down)
}
