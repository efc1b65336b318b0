package informer

import (
	"context"
	"fmt"

	"github.com/watchmill/watchmill/store"
)

// HasSynced reports whether the first list of the source can be read.
func (s *SharedInformer[T]) HasSynced() bool { return s.Snapshot().revision > 0 }

// SyncedSignal returns a channel that is closed when the informer has synced, or
// will never: see [SharedInformer.HasSynced].
func (s *SharedInformer[T]) SyncedSignal() <-chan struct{} { return s.settled }

// Synced blocks until the first list of the source can be read. That handlers
// have been told of it is another matter: see [Handle.Synced].
//
// Errors: [ErrNotSynced], with ctx's cause if that ended the wait, and with what
// is wrong with the source: a *[SourceError] for its last error, or why the
// informer ended.
func (s *SharedInformer[T]) Synced(ctx context.Context) error {
	if s.HasSynced() {
		return nil
	}
	err := s.await(ctx, s.settled)
	if s.HasSynced() {
		return nil
	}
	return &NotSyncedError{Laggards: []Laggard{{s.Name(), s.problem()}}, Cause: err}
}

// problem returns why the informer ended, or what keeps it from its source; nil
// if nothing does.
func (s *SharedInformer[T]) problem() error {
	if err := s.Err(); err != nil {
		return err
	}
	if failed := s.trouble.Load(); failed != nil {
		return failed
	}
	return nil
}

// Revision returns the revision that can be read; zero before the first list.
func (s *SharedInformer[T]) Revision() store.Revision { return s.Snapshot().revision }

// WaitForRevision blocks until what was written at revision rev, or before, can
// be read: read your own writes. Handlers may be told of it later. It waits as
// long as ctx lets it. In a deterministic run it must not be called from a
// handler.
//
// Errors: ctx's cause, with the source's last error, if there is one; why the
// informer ended.
func (s *SharedInformer[T]) WaitForRevision(ctx context.Context, rev store.Revision) error {
	x := s.waiters.add(rev, func() bool { return s.Revision() >= rev })
	if err := s.await(ctx, x.over); err != nil {
		s.waiters.remove(x)
		if failed := s.trouble.Load(); failed != nil {
			return fmt.Errorf("wait for revision %d: %w: %w", rev, err, failed)
		}
		return fmt.Errorf("wait for revision %d: %w", rev, err)
	}
	if !x.reached {
		return fmt.Errorf("wait for revision %d: %w", rev, s.Err())
	}
	return nil
}

// Syncer is what can be waited for with [WaitFor]: a [SharedInformer] or a
// [Handle].
type Syncer interface {
	Name() string
	HasSynced() bool
	Synced(ctx context.Context) error
}

// WaitFor blocks until all have synced. The error is a [*NotSyncedError] that
// names all those that have not, and what is wrong with each.
func WaitFor(ctx context.Context, syncers ...Syncer) error {
	for _, each := range syncers {
		if each.Synced(ctx) != nil {
			return laggards(ctx, syncers)
		}
	}
	return nil
}

// laggards asks who has not synced.
func laggards(ctx context.Context, syncers []Syncer) error {
	e := &NotSyncedError{Cause: context.Cause(ctx)}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, each := range syncers {
		if each.HasSynced() {
			continue
		}
		e.Laggards = append(e.Laggards, Laggard{each.Name(), reasonOf(each.Synced(over))})
	}
	return e
}
