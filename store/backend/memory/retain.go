package memory

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/window"
)

// Compact drops the history before rev. Errors: [*store.FutureError] if rev has not happened,
// [store.ErrClosed], ctx's cause.
func (b *Backend) Compact(ctx context.Context, rev store.Revision) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
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
		b.forgetLatest()
	}
	return nil
}

// Compacted returns the oldest revision that can be read and watched from, as set
// by Compact or [Options.Retain]; zero if nothing was dropped yet. Errors:
// [store.ErrClosed], ctx's cause.
func (b *Backend) Compacted(ctx context.Context) (store.Revision, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
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
func (b *Backend) History() window.View {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return window.View{}
	}
	return b.window.View()
}

// unread returns the position up to which all watches that share the state have
// read, including watches for which a list holds the history. The caller holds the lock.
func (b *Backend) unread() window.Seq {
	at := b.window.Next()
	for _, w := range b.sharing {
		at = min(at, w.At)
	}
	for _, h := range b.holds {
		at = min(at, h.at)
	}
	return at
}

// leastTrim is how long trimHistory waits at least before it looks again: what is old enough may
// stay for a watch that has not read it.
const leastTrim = time.Second

// trimLater sets the alarm for history that begins now, unless it is set. The caller holds the lock.
func (b *Backend) trimLater(now time.Time) {
	if !b.trim.IsSet() {
		b.trim.Set(now.Add(b.retain.MinAge))
	}
}

// trimHistory drops old history, so that it does not stay forever when the writes
// stop. It sets the alarm again until nothing is left to drop.
func (b *Backend) trimHistory() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.trim.Rang()
	now, err := expiry.Now(b.clock)
	if err != nil {
		return // the next write sets the alarm
	}
	b.expireHolds(now)
	unread := b.unread()
	dropped := b.window.TrimRead(now, unread)
	if dropped > 0 {
		b.forgetLatest()
	}
	if dropped > 0 || b.trimmed != b.revision || unread < b.window.Next() {
		b.trim.Set(now.Add(max(b.retain.MinAge, leastTrim)))
	}
	b.trimmed = b.revision
}
