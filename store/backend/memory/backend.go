package memory

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
)

// Backend keeps objects in memory. All methods are safe for concurrent use.
// None of them waits for anything but the lock; a ctx that is done when the
// call begins makes it fail, otherwise it is not looked at.
type Backend struct {
	schema store.Schema
	clock  clock.Clock
	// retain is how old history gets before the alarm gives it up.
	retain store.WindowLimits
	// first is the revision of the storage when it was empty.
	first store.Revision

	// identity is made when it is first asked for.
	identity func() string

	// latest is what readers see without the lock; nil after a write, until the
	// next reader makes it anew.
	latest atomic.Pointer[snapshot]

	mu       sync.Mutex // guards all below
	closed   bool
	revision store.Revision
	tree     *store.Tree
	// recent is the object in the tree that was looked up or written last, or nil:
	// an update reads its object and then writes it, and so searches only once.
	recent    *store.Object
	window    *store.Window
	compacted store.Revision // by Compact; the window's floor may be higher
	trimmed   store.Revision // what was newest when history was last trimmed
	waiting   waiting.List
	// sharing are the watches that take the state over, and whose positions
	// history must reach back to.
	sharing  []*watcher
	expiries *expiry.Queue
	expire   expiry.Alarm // at the earliest expiry
	trim     expiry.Alarm // when the oldest history may have come of age
	// size is that of the object that the event being appended to the window takes
	// out of the state: measured before the lock was taken, for that runs code of
	// the user's.
	size int
}

var (
	_ backend.Backend    = (*Backend)(nil)
	_ backend.Emitter    = (*Backend)(nil)
	_ backend.Historian  = (*Backend)(nil)
	_ backend.Identifier = (*Backend)(nil)
)

// New returns an empty backend. Objects' labels, fields and sizes are taken by
// schema. It fails with a
// [*usercode.ConfigError] if opts.Retain cannot be kept to, or
// opts.FirstRevision leaves no room for others.
func New(schema store.Schema, opts Options) (*Backend, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	b := &Backend{
		schema:   schema,
		clock:    opts.Clock,
		retain:   opts.Retain,
		first:    opts.FirstRevision,
		revision: opts.FirstRevision,
		tree:     store.NewTree(opts.Indexes...),
		expiries: expiry.NewQueue(),
		identity: sync.OnceValue(func() string { return "memory:" + rand.Text() }),
	}
	b.window = store.NewWindow(opts.Retain, func(*store.Object) int { return b.size })
	b.window.Reset(b.first)
	b.expire = expiry.NewAlarm(opts.Clock, b.deleteExpired)
	b.trim = expiry.NewAlarm(opts.Clock, b.trimHistory)
	return b, nil
}

// Traits: the memory backend never blocks, and every revision is one event.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Contiguous: true}
}

// StoreID returns what identifies this backend: a number drawn at random, which no
// other has, be it of the same program started again.
func (b *Backend) StoreID(ctx context.Context) (string, error) { return b.identity(), ctx.Err() }

// Revision returns the newest revision.
func (b *Backend) Revision(ctx context.Context) (store.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.revision, b.closedError()
}

// Close ends every watch with [store.ErrClosed], stops the timers and lets go
// of all objects. A second Close does nothing.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	b.latest.Store(nil)
	b.expire.Set(expiry.Never)
	b.trim.Set(expiry.Never)
	b.tree, b.recent, b.window, b.expiries, b.sharing = nil, nil, nil, nil, nil
	woken := b.waiting.Take()
	b.mu.Unlock()
	waiting.WakeAll(woken)
	return nil
}

// closedError is what calls fail with once the backend is closed.
func (b *Backend) closedError() error {
	if b.closed {
		return store.ErrClosed
	}
	return nil
}
