package watcher

import (
	"context"

	"github.com/watchmill/watchmill/store"
)

// Feed is what the watchers of one dispatcher share: the snapshot that they
// read, and what they need of the outside.
type Feed struct {
	// Await blocks until ready is signalled or ctx is done. Nil waits on both;
	// deterministic runs replace it, to run the engine meanwhile.
	Await func(ctx context.Context, ready <-chan struct{}) error
	// Go runs f, which may block, on a goroutine that the engine accounts for.
	// It carries the channel of [Watch.Chan].
	Go func(f func())
	// Recovered is told when a watch that the dispatcher called stalled has
	// caught up. It must not block. May be nil.
	Recovered func(*Watch)

	current store.Published
	leashes leashes
}

// Load returns the newest snapshot that the dispatcher has dispatched: every
// event in it has been offered to every stream.
func (f *Feed) Load() *store.Snapshot { return f.current.Load() }

// Publish makes snap what watchers read. Only the dispatcher calls it, after
// the streams have been appended to and whoever snap's window has overrun has
// been told.
func (f *Feed) Publish(snap *store.Snapshot) { f.current.Store(snap) }

func (f *Feed) await(ctx context.Context, ready <-chan struct{}) error {
	if f.Await != nil {
		return f.Await(ctx, ready)
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
