package watchcache

import (
	"container/heap"
	"time"

	"github.com/watchmill/watchmill/store"
)

// waiter is a call that waits for a revision.
type waiter struct {
	revision store.Revision
	until    time.Time
	reply    chan<- error
}

// waiters is a heap ordered by revision, so that an event visits only the waiters that it
// satisfies. A waiter whose caller has returned stays until it times out.
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

func (w *waiters) add(x waiter) { heap.Push(w, x) }

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
