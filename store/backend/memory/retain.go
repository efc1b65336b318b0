package memory

import (
	"context"

	"github.com/watchmill/watchmill/store"
)

// Compact gives up the history before rev.
func (b *Backend) Compact(ctx context.Context, rev store.Revision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return store.ErrClosed
	case rev > b.revision:
		return &store.FutureError{Requested: rev, Current: b.revision}
	case rev > b.compacted:
		b.compacted = rev
		b.window.Compact(rev)
		b.latest.Store(nil)
	}
	return nil
}

// Compacted returns the oldest revision that can be read and watched from,
// whether Compact or [Options.Retain] made it so; zero as long as nothing was
// given up.
func (b *Backend) Compacted(ctx context.Context) (store.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, store.ErrClosed
	}
	return b.compactedTo(), nil
}

// compactedTo is Compacted for callers that hold the lock.
func (b *Backend) compactedTo() store.Revision {
	if floor := b.window.View().Floor(); floor > b.first {
		return max(floor, b.compacted)
	}
	return b.compacted
}

// History returns the changes that reads and watches can still go back to; none
// once the backend is closed.
func (b *Backend) History() store.WindowView {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return store.WindowView{}
	}
	return b.window.View()
}

// unread returns the position up to which all watches that take the state over
// have read. The caller holds the lock.
func (b *Backend) unread() store.Seq {
	at := b.window.View().Next()
	for _, w := range b.sharing {
		at = min(at, w.at)
	}
	return at
}

// trimHistory gives up what has come of age, so that history does not stay for
// ever when the writes stop. It comes back until there is nothing left to give
// up and nothing new.
func (b *Backend) trimHistory() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.trim.Rang()
	now := b.clock.Now()
	dropped := b.window.TrimRead(now, b.unread())
	if dropped > 0 {
		b.latest.Store(nil)
	}
	if dropped > 0 || b.trimmed != b.revision {
		b.trim.Set(now.Add(b.retain.MinAge))
	}
	b.trimmed = b.revision
}
