package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Syncer is an argument of [WaitFor]: a [SharedInformer] or a [Registration]. A type of your own
// that waits for one of them on a deterministic host must embed it, so that WaitFor knows that only
// one goroutine may run the host. It never gains methods.
type Syncer interface {
	Name() string
	HasSynced() bool
	WaitSynced(ctx context.Context) error
}

// WaitFor blocks until all have synced, or one has ended without. The error is a
// [*NotSyncedError] that names all those that have not, with their errors, or an
// [*engine.ConfigError] if one of them is nil, as what AddEventHandler returns beside an error.
func WaitFor(ctx context.Context, syncers ...Syncer) error {
	if i := slices.IndexFunc(syncers, usercode.IsNil); i >= 0 {
		return &engine.ConfigError{Field: fmt.Sprintf("syncers[%d]", i), Problem: "is nil; give an informer or a registration"}
	}
	wait := waitForAll
	if len(syncers) == 1 || onDeterministicHost(syncers) {
		wait = waitForEach
	}
	if err := wait(ctx, syncers); err != nil {
		return laggards(endOfWait(err), syncers)
	}
	return nil
}

// onDeterministicHost reports whether one of them is on a deterministic host, which only
// one goroutine may run.
func onDeterministicHost(syncers []Syncer) bool {
	return slices.ContainsFunc(syncers, func(each Syncer) bool {
		on, ok := each.(interface{ hostOf() *engine.Host })
		return ok && on.hostOf().Deterministic()
	})
}

// waitForEach waits for one after the other. On a deterministic host the wait for one that
// never syncs ends when there is nothing left to run.
func waitForEach(ctx context.Context, syncers []Syncer) error {
	for _, each := range syncers {
		if err := each.WaitSynced(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitForAll waits for all at the same time, so that the first that ends without having
// synced ends the wait for the others.
func waitForAll(ctx context.Context, syncers []Syncer) (first error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, len(syncers))
	for _, each := range syncers {
		go func() {
			err := usercode.ErrGoexit // unless the call returns
			defer func() { ended <- err }()
			if panicked := usercode.Call("Syncer.WaitSynced", "", func() { err = each.WaitSynced(ctx) }); panicked != nil {
				err = panicked
			}
		}()
	}
	for range syncers {
		if err := <-ended; err != nil && first == nil {
			first = err
			cancel(err)
		}
	}
	return first
}

// laggards returns a [*NotSyncedError] for those that have not synced; nil if all have meanwhile.
func laggards(cause error, syncers []Syncer) error {
	e := &NotSyncedError{Cause: cause}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, each := range syncers {
		if each.HasSynced() {
			continue
		}
		if err := each.WaitSynced(over); err != nil { // else it has synced just now
			e.Laggards = append(e.Laggards, Laggard{each.Name(), reasonOf(err)})
		}
	}
	if len(e.Laggards) == 0 {
		return nil
	}
	return e
}

// endOfWait returns why a wait ended that returned err: the Cause of a [NotSyncedError].
func endOfWait(err error) error {
	if late, ok := errors.AsType[*NotSyncedError](err); ok {
		return late.Cause
	}
	return err
}

// reasonOf returns the error inside a [NotSyncedError].
func reasonOf(err error) error {
	if late, ok := errors.AsType[*NotSyncedError](err); ok && len(late.Laggards) == 1 {
		return late.Laggards[0].Err
	}
	return err
}

func (s *sharedInformer) hasSynced() bool { return s.published.Load().revision > 0 }

func (s *sharedInformer) syncedSignal() <-chan struct{} { return s.firstList }

func (s *sharedInformer) synced(ctx context.Context) error {
	if s.hasSynced() {
		return nil
	}
	err := s.host.Await(ctx, s.firstList)
	if s.hasSynced() {
		return nil
	}
	return &NotSyncedError{Laggards: []Laggard{{s.name(), s.problem()}}, Cause: err}
}

// problem returns why the informer ended, or, if it has not synced, the source's last error, if
// any.
func (s *sharedInformer) problem() error {
	if err := s.err(); err != nil {
		return err
	}
	if failed := s.sourceProblem(); failed != nil && !s.hasSynced() {
		return failed
	}
	return nil
}

func (s *sharedInformer) waitForRevision(ctx context.Context, rev store.Revision) error {
	x := s.waiters.add(rev, func() bool { return s.published.Load().revision >= rev })
	s.requestProgress() // the revision may have no event
	if err := s.host.Await(ctx, x.over); err != nil {
		if s.waiters.remove(x) {
			return nil // the wait and ctx have ended together
		}
		if failed := s.sourceProblem(); failed != nil {
			return fmt.Errorf("wait for revision %d: %w: %w", rev, err, failed)
		}
		return fmt.Errorf("wait for revision %d: %w", rev, err)
	}
	if !x.reached && s.published.Load().revision < rev {
		return fmt.Errorf("wait for revision %d: %w", rev, s.err())
	}
	return nil
}

// requestProgress requests progress from the source, once it is followed, which the Reflector
// repeats while calls wait.
func (s *sharedInformer) requestProgress() {
	if source := s.source.Load(); source != nil {
		source.RequestProgress()
	}
}

// waiters are the calls that wait for a revision, until it is reached or the
// informer ends.
type waiters struct {
	mu sync.Mutex
	// all is in the order of the revisions, so that a commit visits only those
	// that it ends.
	all   []*waiter
	ended bool
}

type waiter struct {
	revision store.Revision
	// over is closed when the wait has ended; reached then reports whether it ended
	// with the revision.
	over    chan struct{}
	reached bool
}

func (x *waiter) end(reached bool) {
	x.reached = reached
	close(x.over)
}

// add returns a new waiter, whose wait has ended already if the revision is reached.
// reached is called under the lock, so that no commit is missed in between.
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

// waiting reports whether a call waits.
func (w *waiters) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all) > 0
}

// remove removes a waiter whose call has ended, and reports whether its revision is reached.
func (w *waiters) remove(x *waiter) (reached bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.DeleteFunc(w.all, func(other *waiter) bool { return other == x })
	return x.reached
}

// reach ends the waits for at most rev.
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

// end ends all waits, now and from now on.
func (w *waiters) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, x := range w.all {
		x.end(false)
	}
	w.all = nil
}
