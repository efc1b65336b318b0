package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// Backend is the objects of one type in a file. All methods are safe for
// concurrent use.
//
// Writes wait until they are durable. Reads of the newest state, and of past states that
// are still in memory, do not use the file.
type Backend struct {
	file   *File
	name   string
	clock  clock.Clock
	config Config
	values values

	// latest is what readers see without the lock; nil after a write, until the
	// next reader makes it anew.
	latest atomic.Pointer[snapshot]
	// running counts what goes on in goroutines of callers and of its own.
	running sync.WaitGroup
	// unregister is what Close does once.
	unregister sync.Once
	// stage is what the group being committed makes of the state. Only the
	// goroutine that commits uses it.
	stage stage

	mu       sync.Mutex // guards all below
	closed   bool
	loaded   bool // New has read the objects; upkeep leaves the log alone before that
	revision store.Revision
	tree     *tree.Tree
	// recent is the object in the tree that was looked up or written last, or nil.
	recent *store.Object
	// undecodable are the objects whose values New could not decode. It does not change.
	undecodable undecodables
	window      *window.Window
	floor       store.Revision // history before it is discarded; zero if none is
	first       store.Revision // where history begins if floor is zero
	history     history
	waiting     waiting.List
	expiries    *expiry.Queue
	expire      expiry.Alarm // at the earliest expiry
	trim        expiry.Alarm // when history may be old enough to discard
	indexes     pastIndexes  // of the past states listed last, at first of the oldest
	forget      expiry.Alarm // of indexes
	// size is the bytes of the object that the event being appended to the window
	// replaces or deletes. The window reads it through the function given to window.New.
	size int
}

var (
	_ backend.Backend    = (*Backend)(nil)
	_ backend.Emitter    = (*Backend)(nil)
	_ backend.Identifier = (*Backend)(nil)
)

// New returns the backend of the objects of that name in f; a new name has none. It
// reads all of them, and deletes those that have expired while the file was closed.
//
// Errors: [*usercode.ConfigError] for an invalid config; [ErrTypeInUse] if the name is in
// use; [*backend.UndecodableError]; [*CorruptError]; [*ReadOnlyError] for a new name in a
// file that is open for reading; [*FullError] for a new name; [*FailedError]; a
// [*usercode.PanicError] of the schema, the codec or the clock; [store.ErrClosed].
func New(f *File, name string, cfg Config) (*Backend, error) {
	if f == nil {
		return nil, &usercode.ConfigError{Field: "f", Problem: "is nil; give what Open returns"}
	}
	if err := cfg.validate(name); err != nil {
		return nil, err
	}
	now, err := expiry.Now(f.opts.Clock)
	if err != nil {
		return nil, err
	}
	b := newBackend(f, name, cfg.withDefaults(now))
	if err := f.register(b); err != nil {
		return nil, err
	}
	opened := false
	defer func() {
		if !opened { // even if user code has ended the goroutine
			_ = b.Close()
		}
	}()
	if err := b.open(); err != nil {
		return nil, err
	}
	opened = true
	return b, nil
}

func newBackend(f *File, name string, cfg Config) *Backend {
	b := &Backend{
		file: f, name: name, clock: f.opts.Clock, config: cfg,
		values:   values{name: name, schema: cfg.Schema, codec: cfg.Codec, sealer: cfg.Sealer},
		tree:     tree.New(cfg.Indexes...),
		expiries: expiry.NewQueue(),
		history:  newHistory(cfg.Retain),
	}
	b.stage.objects = map[string]*store.Object{}
	b.window = window.New(hotLimits, func(*store.Object) int { return b.size })
	b.expire = expiry.NewAlarm(b.clock, b.deleteExpired)
	b.trim = expiry.NewAlarm(b.clock, b.trimByAge)
	b.forget = expiry.NewAlarm(b.clock, b.forgetIndexes)
	return b
}

// register reserves b's name in the file.
func (f *File) register(b *Backend) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return store.ErrClosed
	case f.types[b.name] != nil:
		return fmt.Errorf("%w: %q of %s: close the other backend first", ErrTypeInUse, b.name, f.path)
	}
	f.types[b.name] = b
	return nil
}

// open reads the objects and starts their expiry and upkeep.
func (b *Backend) open() error {
	bounds, err := b.file.journal.Declare(b.name, uint64(b.config.FirstRevision))
	if err != nil {
		return err
	}
	if err := b.load(bounds); err != nil {
		return err
	}
	if b.file.opts.ReadOnly {
		return nil
	}
	if err := b.deleteAllExpired(); err != nil {
		if !backend.Retryable(err) {
			return err
		}
		b.retryExpiry(err)
	}
	b.beginTrim()
	if bounds.Trimmed < bounds.Floor {
		b.file.upkeep.start()
	}
	return nil
}

// beginTrim sets the alarm for history that New has read.
func (b *Backend) beginTrim() {
	b.mu.Lock()
	defer b.mu.Unlock() // even if the clock ends the goroutine
	if !b.closed {
		b.trim.SetIn(b.config.Retain.MinAge)
	}
}

// Traits: only reads of old revisions wait for the disk, every revision is one event,
// and history survives a restart.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Contiguous: true, KeepsHistory: true, Type: b.values.schema.Type}
}

// StoreID returns the identity of the objects of this type in this file: the file's
// random number, its timeline, which is another one in a restored copy, the random number of
// that copy, and the name. It does not block. Errors: [store.ErrClosed], ctx's cause.
func (b *Backend) StoreID(ctx context.Context) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	b.mu.Lock()
	closed := b.closedError()
	b.mu.Unlock()
	if closed != nil {
		return "", closed
	}
	id := b.file.journal.Identity()
	if id.Branch != 0 {
		return fmt.Sprintf("bolt:%x.%d.%x/%s", id.ID, id.Timeline, id.Branch, b.name), nil
	}
	return fmt.Sprintf("bolt:%x.%d/%s", id.ID, id.Timeline, b.name), nil
}

// Revision returns the newest revision. It does not read the file. Errors:
// [store.ErrClosed], ctx's cause.
func (b *Backend) Revision(ctx context.Context) (store.Revision, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.revision, b.closedError()
}

// closedError is the error of calls once the backend is closed.
func (b *Backend) closedError() error {
	if b.closed {
		return store.ErrClosed
	}
	return nil
}

// Close ends every watch with [store.ErrClosed], waits for writes that are being committed, and
// releases all objects. If history was discarded, for example by Compact, it waits until the
// file's space is free: the file looks after the types that are open. The file stays open. A
// second Close does nothing.
func (b *Backend) Close() error {
	defer b.finishClose() // even if the Notify of a watch ends the goroutine
	b.beginClose()
	return nil
}

// finishClose waits for what goes on, and gives up the name.
func (b *Backend) finishClose() {
	b.running.Wait()
	b.unregister.Do(func() {
		b.trimRest()
		b.file.mu.Lock()
		defer b.file.mu.Unlock()
		if b.file.types[b.name] == b {
			delete(b.file.types, b.name)
		}
	})
}

// trimRest deletes the records of discarded history that are left, of a type that New could
// open. A file that is closed keeps them until the type is opened again.
func (b *Backend) trimRest() {
	b.mu.Lock()
	loaded := b.loaded
	b.mu.Unlock()
	bounds, err := b.file.journal.Bounds(b.name)
	if err != nil || bounds.Trimmed >= bounds.Floor || !loaded || b.file.opts.ReadOnly {
		return
	}
	if err := b.trimToFloor(b.file.upkeep.isStopped); err != nil && !errors.Is(err, store.ErrClosed) {
		b.file.failed(err)
	}
}

// beginClose is Close without waiting.
func (b *Backend) beginClose() {
	var woken []*waiting.Follower
	defer func() { waiting.WakeAll(woken) }() // even if the clock ends the goroutine
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.latest.Store(nil)
	b.tree, b.recent, b.window, b.expiries, b.indexes, b.undecodable = nil, nil, nil, nil, nil, nil
	woken = b.waiting.Take()
	usercode.Each([]*expiry.Alarm{&b.expire, &b.trim, &b.forget}, func(a *expiry.Alarm) { a.Set(expiry.Never) })
}

// begin makes Close wait for the caller until it calls end. It fails with
// [store.ErrClosed].
func (b *Backend) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beginLocked()
}

// beginLocked is begin of a caller that holds the lock.
func (b *Backend) beginLocked() error {
	if b.closed {
		return store.ErrClosed
	}
	b.running.Add(1)
	return nil
}

func (b *Backend) end() { b.running.Done() }

// oldest is the oldest revision that can be read and watched from. The caller
// holds the lock.
func (b *Backend) oldest() store.Revision { return max(b.floor, b.first) }

// corrupt returns the error of a record whose checksum is right and whose contents are
// wrong.
func (b *Backend) corrupt(revision uint64, what string) error {
	return &CorruptError{Path: b.file.path, Page: journal.NoPage, Log: b.name, Revision: revision, What: what}
}
