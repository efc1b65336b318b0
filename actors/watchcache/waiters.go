package watchcache

import (
	"container/heap"
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
)

// waiter is a call that waits for a revision.
type waiter struct {
	revision store.Revision
	until    time.Time
	done     <-chan struct{} // closed when the caller has returned
	reply    chan<- error
}

// gone reports whether the caller has returned.
func (w waiter) gone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// waiters is a heap ordered by revision, so that an event visits only the waiters that it
// satisfies. A waiter whose caller has returned stays until it times out, or there is no
// more room.
type waiters []waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, j int) bool { return w[i].revision < w[j].revision }
func (w waiters) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }

// Push and Pop implement [heap.Interface].
func (w *waiters) Push(x any) { *w = append(*w, x.(waiter)) }
func (w *waiters) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	(*w)[last] = waiter{}
	*w = (*w)[:last]
	return x
}

// add adds a waiter. Whenever there is no more room it drops the waiters whose callers have
// returned, so that their number is at most a few times that of the callers that wait.
func (w *waiters) add(x waiter) {
	if len(*w) == cap(*w) {
		*w = slices.DeleteFunc(*w, waiter.gone)
		*w = slices.Grow(*w, len(*w)+1)
		heap.Init(w)
	}
	heap.Push(w, x)
}

// reached answers the waiters for revisions up to rev.
func (w *waiters) reached(rev store.Revision) {
	for len(*w) > 0 && (*w)[0].revision <= rev {
		heap.Pop(w).(waiter).reply <- nil
	}
}

// due answers the timed-out waiters with the error that reason returns.
func (w *waiters) due(now time.Time, reason func(store.Revision) error) {
	kept := (*w)[:0]
	for _, x := range *w {
		if x.until.After(now) {
			kept = append(kept, x)
			continue
		}
		x.reply <- reason(x.revision)
	}
	clear((*w)[len(kept):])
	*w = kept
	heap.Init(w)
}

// all answers all waiters with err.
func (w *waiters) all(err error) {
	for _, x := range *w {
		x.reply <- err
	}
	*w = nil
}

// next returns when the first waiter times out.
func (w waiters) next() (at time.Time, ok bool) {
	for i, x := range w {
		if i == 0 || x.until.Before(at) {
			at = x.until
		}
	}
	return at, len(w) > 0
}
