package dispatcher

import (
	"slices"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// future is the watches that start at a revision which has not come yet: some
// other replica's, or a write's that the cache has not heard of.
type future []awaited

// awaited is a watch with the revision that its consumer knows the state of.
type awaited struct {
	watch *watcher.Watch
	from  store.Revision
}

func (f *future) add(w *watcher.Watch, from store.Revision) {
	*f = append(*f, awaited{w, from})
}

// arrive lets go of the watches whose revision comes with next, which is about
// to be published, and returns how many of them it has ended: those whose
// revision has come to lie where a list took the place of what happened, or is
// gone already. What changed since for their consumers, nobody can tell.
func (f *future) arrive(next *store.Snapshot) (expired uint64) {
	*f = slices.DeleteFunc(*f, func(a awaited) bool {
		if a.watch.Ended() || a.from > next.Revision {
			return a.watch.Ended()
		}
		if _, err := next.Window.Seek(a.from); err != nil {
			a.watch.Finish(err)
			expired++
		}
		return true
	})
	return expired
}
