package informer

import (
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
)

// waiters are those who wait for a revision: until it is reached, or will never be.
type waiters struct {
	mu sync.Mutex
	// all is in the order of the revisions, so that a commit looks only at those
	// whose time has come.
	all   []*waiter
	ended bool
}

type waiter struct {
	revision store.Revision
	// over is closed when the wait is; then reached says how.
	over    chan struct{}
	reached bool
}

func (x *waiter) end(reached bool) {
	x.reached = reached
	close(x.over)
}

// add returns a new waiter. reached tells whether there is nothing to wait for;
// it is asked under the lock, so that a commit in between is not missed.
func (w *waiters) add(rev store.Revision, reached func() bool) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &waiter{revision: rev, over: make(chan struct{})}
	if there := reached(); there || w.ended {
		x.end(there)
		return x
	}
	i, _ := slices.BinarySearchFunc(w.all, rev, func(a *waiter, rev store.Revision) int {
		if a.revision <= rev {
			return -1
		}
		return 1
	})
	w.all = slices.Insert(w.all, i, x)
	return x
}

// remove forgets a waiter that has given up.
func (w *waiters) remove(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.DeleteFunc(w.all, func(other *waiter) bool { return other == x })
}

// reach lets go those who wait for at most rev.
func (w *waiters) reach(rev store.Revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for n < len(w.all) && w.all[n].revision <= rev {
		w.all[n].end(true)
		n++
	}
	w.all = slices.Delete(w.all, 0, n)
}

// end lets all go, now and from now on.
func (w *waiters) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, x := range w.all {
		x.end(false)
	}
	w.all = nil
}
