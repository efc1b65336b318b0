package watcher

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// Feed is shared by the watches of one dispatcher: the snapshot that they read, and
// their dependencies. Set the fields before the first watch is made; only Registry is
// required.
type Feed struct {
	// Await blocks until ready is signalled or ctx is done. Nil waits on both;
	// deterministic runs replace it to run the engine meanwhile.
	Await func(ctx context.Context, ready <-chan struct{}) error
	// Go runs f, which may block, on a goroutine of the engine's host, for
	// [Watch.Pump].
	Go func(f func())
	// Yield is called by that goroutine before each event that it hands over, so
	// that a deterministic run can have others run there. Nil costs nothing.
	Yield func()
	// Committed returns the newest revision that storage is known to have
	// committed, from which lag is counted. It must not block. Nil means the
	// dispatched revision.
	Committed func() store.Revision
	// Report is called with each panic of a notify function of [NewNotified], each event
	// that a handler's attempts were given up for, and each pause between them that the
	// clock has failed to time. It must not block.
	Report func(error)

	// Reason returns the reason for which a watch ends as its consumer is told it. It must not block. Nil
	// leaves reasons as they are.
	Reason func(error) error

	// Newest returns the newest snapshot that the watchCache has published, which may
	// be ahead of the dispatcher. Nil means unknown.
	Newest func() *window.Snapshot
	// Now returns the time, for ages in [Info]; nil means unknown.
	Now func() time.Time
	// Registry has the running watches of all feeds that share it.
	Registry *Registry

	// Drain has the feed's only watch end when it has been given everything up to
	// a revision. It may block until ctx is done. It is nil for feeds of several, which
	// their dispatcher drains.
	Drain func(ctx context.Context, final store.Revision)

	// Delivered is called with each batch that a consumer is given, before it has it. It must
	// not block. Nil costs nothing.
	Delivered func([]store.Event)

	// InitialEvents counts the events of initial states that watches have read. Nil counts
	// none.
	InitialEvents *atomic.Uint64

	// Recovered is called when a stalled watch has caught up, Ended when one
	// without a handler has ended, or the actor of one with a handler has stopped.
	// The dispatcher sets them; they must not block.
	Recovered, Ended func(*Member)

	current window.Published

	// origin is the time from which the feed counts when its watches began, that of the
	// first. It keeps the monotonic reading that a number of each watch's own would lack.
	origin     time.Time
	originOnce sync.Once
}

// Load returns the newest snapshot that the dispatcher has dispatched to all
// streams.
func (f *Feed) Load() *window.Snapshot { return f.current.Load() }

// Publish publishes snap to the watches. Only the dispatcher calls it, after it has
// appended to the streams and called WindowMoved.
func (f *Feed) Publish(snap *window.Snapshot) { f.current.Store(snap) }

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

// undispatched returns how many revisions beyond snap are known to be committed.
func (f *Feed) undispatched(snap *window.Snapshot) uint64 {
	if f.Committed == nil {
		return 0
	}
	committed := f.Committed()
	return uint64(max(committed, snap.Revision) - snap.Revision)
}

// now returns the time, or zero.
func (f *Feed) now() time.Time {
	if f.Now == nil {
		return time.Time{}
	}
	return f.Now()
}

// elapsed returns how long after the feed's origin now is. Setting the machine's clock does
// not change it, if the feed's clock has monotonic readings as the real one has.
func (f *Feed) elapsed(now time.Time) time.Duration {
	f.originOnce.Do(func() { f.origin = now })
	return now.Sub(f.origin)
}

func (f *Feed) recovered(w *Watch) {
	if f.Recovered != nil {
		f.Recovered((*Member)(w))
	}
}

func (f *Feed) ended(w *Watch) {
	if f.Ended != nil {
		f.Ended((*Member)(w))
	}
}
