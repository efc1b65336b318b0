package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// Backend keeps objects in memory. All methods are safe for concurrent use. They
// block only on the lock, and check ctx only when called.
type Backend struct {
	schema store.Schema
	clock  clock.Clock
	// retain bounds the history.
	retain window.Limits
	// first is the revision of the storage when it was empty.
	first store.Revision

	// identity returns the storage's identity, which its first call makes.
	identity func() string

	// latest is what readers see without the lock; nil after a write, until the
	// next reader makes a new one.
	latest atomic.Pointer[snapshot]

	mu       sync.Mutex // guards all below
	closed   bool
	revision store.Revision
	changed  store.Revision // of the newest event that is not Emitted
	tree     *tree.Tree
	// recent is the key that was read or written last: a write reads the object, or that
	// there is none, before it writes it, and so searches only once.
	recent    lookup
	window    *window.Window
	compacted store.Revision // by Compact; the window's floor may be higher
	trimmed   store.Revision // the newest revision when history was last trimmed
	waiting   waiting.List
	// sharing are the watches that share the state; history keeps what they have
	// not read.
	sharing  []*watcher
	holds    []hold // for the watches to come
	expiries *expiry.Queue
	expire   expiry.Alarm // at the earliest expiry
	trim     expiry.Alarm // when the oldest history may have reached its age
	// size is that of the object replaced or deleted by the event being appended
	// to the window: measured before the lock was taken, since that runs user
	// code.
	size int
}

var (
	_ backend.Backend    = (*Backend)(nil)
	_ backend.Emitter    = (*Backend)(nil)
	_ backend.Historian  = (*Backend)(nil)
	_ backend.Identifier = (*Backend)(nil)
)

// New returns a backend that is empty, except for opts.Objects, and uses schema for objects'
// labels, fields and sizes. It fails with a [*usercode.ConfigError] if opts are invalid or
// schema lacks Clone or Size, and with a [*usercode.PanicError] if the clock panics, or a
// function of schema for an object.
func New(schema store.Schema, opts Options) (*Backend, error) {
	if schema.Clone == nil || schema.Size == nil {
		return nil, &usercode.ConfigError{Field: "schema", Problem: "lacks Clone or Size; give that of the type, such as engine.Config.Schema returns"}
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Backend{
		schema:   schema,
		clock:    opts.Clock,
		retain:   opts.Retain,
		first:    opts.FirstRevision,
		revision: opts.FirstRevision,
		tree:     tree.New(opts.Indexes...),
		expiries: expiry.NewQueue(),
		identity: sync.OnceValue(func() string { return "memory:" + rand.Text() }),
	}
	b.window = window.New(opts.Retain, func(*store.Object) int { return b.size })
	b.window.Reset(b.first)
	b.expire = expiry.NewAlarm(opts.Clock, b.deleteExpired)
	b.trim = expiry.NewAlarm(opts.Clock, b.trimHistory)
	if err := b.begin(opts.Objects); err != nil {
		return nil, err
	}
	return b, nil
}

// begin takes the objects to begin with, and deletes those that have expired.
func (b *Backend) begin(objects []*store.Object) error {
	for _, o := range objects {
		if err := b.beginWith(o); err != nil {
			return err
		}
	}
	now, err := expiry.Now(b.clock)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	expired := b.expiries.Expired(now, len(objects))
	for _, e := range expired {
		b.commitDeletion(e.Object, e.Size, now)
	}
	b.setAlarms(len(expired), now)
	return nil
}

// beginWith puts an object to begin with in the state, without an event.
func (b *Backend) beginWith(o *store.Object) error {
	if err := b.validate(o); err != nil {
		return err
	}
	if err := backend.Describe(&b.schema, o); err != nil {
		return err
	}
	size, err := backend.Measure(&b.schema, o)
	if err != nil {
		return err
	}
	b.tree.Put(o)
	if !o.Expires.IsZero() {
		b.expiries.Add(o, size)
	}
	return nil
}

// validate returns why the storage cannot begin with o.
func (b *Backend) validate(o *store.Object) error {
	invalid := func(problem string) error {
		return &usercode.ConfigError{Field: "Options.Objects", Problem: fmt.Sprintf("%s: %q at revision %d", problem, o.Key, o.Revision)}
	}
	if err := store.ValidateKey(o.Key); err != nil {
		return fmt.Errorf("%w: %w", invalid("has an invalid key"), err)
	}
	switch {
	case o.Created == 0 || o.Created > o.Revision:
		return invalid("has an object whose Created is zero or above its Revision")
	case o.Revision > maxFirstRevision:
		return invalid("has an object whose revision is so large that none could follow")
	case o.Revision > b.first:
		return invalid(fmt.Sprintf("has an object newer than FirstRevision, which is %d", b.first))
	case b.tree.Get(o.Key) != nil:
		return invalid("has two objects with one key")
	}
	return nil
}

// Traits: the memory backend never blocks, and every revision is one event.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Contiguous: true, Type: b.schema.Type}
}

// StoreID returns the identity of this backend: a random text, so that no other backend
// has it, not even that of the same program after a restart. Errors: [store.ErrClosed], ctx's
// cause.
func (b *Backend) StoreID(ctx context.Context) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return "", store.ErrClosed
	}
	return b.identity(), nil
}

// Revision returns the newest revision. Errors: [store.ErrClosed], ctx's cause.
func (b *Backend) Revision(ctx context.Context) (store.Revision, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.revision, b.closedError()
}

// Close ends every watch with [store.ErrClosed], stops the timers and releases all
// objects. A second Close has no effect.
func (b *Backend) Close() error {
	var woken []*waiting.Follower
	defer func() { waiting.WakeAll(woken) }() // even if the clock ends the goroutine
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.forgetLatest()
	b.tree, b.recent, b.window, b.expiries, b.sharing, b.holds = nil, lookup{}, nil, nil, nil, nil
	woken = b.waiting.Take()
	b.expire.Set(expiry.Never)
	b.trim.Set(expiry.Never)
	return nil
}

// closedError returns the error of calls after Close.
func (b *Backend) closedError() error {
	if b.closed {
		return store.ErrClosed
	}
	return nil
}
