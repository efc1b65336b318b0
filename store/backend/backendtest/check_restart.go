package backendtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// restartChecks are of storage that outlives the process.
var restartChecks = []check{
	{"Restart_KeepsStateAndRevision", func(r *rig) {
		if !r.restarts() {
			return
		}
		a := r.create("a", "1")
		b := r.update(r.create("b", "1"), "2")
		c := r.putFor(time.Hour, "c", "1", nil)
		gone := r.remove(r.create("d", "1"))
		id := r.identity()
		r.restart(0)
		r.holds(a, b, c)
		require.GreaterOrEqual(r, r.revision(), gone.Revision, "revisions never go back")
		require.Greater(r, r.create("d", "2").Revision, gone.Revision, "a revision is never used twice")
		require.Equal(r, id, r.identity(), "it is the same storage")
		_, err := r.tryPut(draft("b", "3"), a, backend.PutOptions{})
		r.fails(err, store.ErrConflict, "an update over another revision")
		r.update(b, "3")
	}},
	{"Restart_ResumesFromEveryRevision", func(r *rig) {
		if !r.restarts() {
			return
		}
		start := r.revision()
		r.mixture(1, 40)
		told := r.follow("", start).until(r.revision())
		r.restart(time.Minute)
		r.mixture(2, 10)
		later := r.follow("", told[len(told)-1].Revision).until(r.revision())
		for i := range told {
			from := start
			if i > 0 {
				from = told[i-1].Revision
			}
			f := r.follow("", from)
			f.max = 1 + i%7
			require.Equal(r, append(texts(told[i:]), texts(later)...), texts(f.until(r.revision())), "a watch from revision %d", from)
			f.watcher.Close()
		}
	}},
	{"Restart_ListsEveryRevision", func(r *rig) {
		if !r.restarts() {
			return
		}
		r.mixture(1, 30)
		from, states := r.revision(), map[store.Revision][]string{}
		r.mixture(2, 20)
		for _, ev := range r.follow("", from).until(r.revision()) {
			states[ev.Revision] = describeAll(r.list(backend.ListOptions{Revision: ev.Revision}).Items)
		}
		r.restart(0)
		for at, want := range states {
			require.Equal(r, want, describeAll(r.list(backend.ListOptions{Revision: at}).Items), "the state at %d", at)
		}
	}},
	{"Restart_KeepsWhatWasCompacted", func(r *rig) {
		if !r.restarts() {
			return
		}
		a := r.create("a", "1")
		a2 := r.update(a, "2")
		gone := r.remove(a2)
		r.compact(a2.Revision)
		r.restart(0)
		require.Equal(r, a2.Revision, r.compacted())
		_, err := r.Backend.Watch(r.ctx, backend.WatchOptions{From: a.Revision, Notify: func() {}})
		r.fails(err, store.ErrExpired, "a watch from before the compaction")
		r.follow("", a2.Revision).sees(deleted(a2, gone))
		r.compact(gone.Revision)
		r.restart(0)
		require.GreaterOrEqual(r, r.revision(), gone.Revision, "the newest revision outlives all that had one")
	}},
	{"Restart_DeletesWhatExpiresMeanwhile", func(r *rig) {
		if !r.restarts() {
			return
		}
		kept := r.create("kept", "x")
		brief := r.putFor(2*time.Second, "brief", "x", nil)
		r.restart(3*time.Second + r.TTLSlack)
		f := r.follow("", brief.Revision)
		r.deletedNext(f, brief)
		r.holds(kept)
	}},
}

// restarts reports whether storage outlives the process, which the backend must
// say as its harness does.
func (r *rig) restarts() bool {
	r.Helper()
	keeps := r.Backend.Traits().Keeps
	require.Equal(r, r.Reopen != nil, keeps, "Traits.Keeps, and whether the harness can reopen the storage")
	return keeps
}

// restart ends the backend and opens its storage again.
func (r *rig) restart(down time.Duration) {
	r.Helper()
	r.Backend = r.Reopen(down)
}
