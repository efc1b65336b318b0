package informer

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// SharedInformer keeps a copy of what a source holds and notifies handlers of what
// changes. Make one with [New]. All methods are safe for concurrent use.
type SharedInformer[T any] struct{ core informerCore }

// informerCore is what the typed façade calls: a [sharedInformer]. It is an
// interface for the sake of the user's compiler, which compiles anew, for each
// package that mentions SharedInformer[Pod], the methods of every generic type
// that it finds in the fields of a struct.
type informerCore interface {
	snapshot() snapshotCore
	quarantined() []quarantined
	addIndexers(store.Indexers[*store.Object]) error
	addHandler(handle func(notification), opts HandlerOptions) (*Registration, error)
	overlay(limit int) overlayCore
	name() string
	hostOf() *engine.Host
	err() error
	stats() Stats
	syncedSignal() <-chan struct{}
	synced(ctx context.Context) error
	waitForRevision(ctx context.Context, rev store.Revision) error
	stop()
	close() error
}

// New starts an informer. It returns at once: [SharedInformer.Synced] waits for
// the first list. Close it when done.
//
// Errors: [ErrConfig]; [ErrClosed] if the host is closed.
func New[T any](cfg Config[T]) (*SharedInformer[T], error) {
	core, err := start(cfg.settings())
	if err != nil {
		return nil, err
	}
	return &SharedInformer[T]{core}, nil
}

// Snapshot returns everything that the informer knows now. It never blocks.
func (s *SharedInformer[T]) Snapshot() Snapshot[T] { return Snapshot[T]{s.core.snapshot()} }

// Get returns the object under key, or nil. It never blocks.
func (s *SharedInformer[T]) Get(key string) *Object[T] { return s.Snapshot().Get(key) }

// List returns the objects that the selector matches, in the order of their
// keys; nil matches all. It never blocks.
func (s *SharedInformer[T]) List(selector labels.Selector) []*Object[T] {
	return s.Snapshot().List(selector)
}

// ByIndex returns the objects that have value in the named index, in the order
// of their keys. It never blocks. The error is [ErrUnknownIndex].
func (s *SharedInformer[T]) ByIndex(name, value string) ([]*Object[T], error) {
	return s.Snapshot().ByIndex(name, value)
}

// Lister returns a reader of the objects under prefix; "" means all.
func (s *SharedInformer[T]) Lister(prefix string) Lister[T] { return Lister[T]{s.core, prefix} }

// Quarantined returns the objects for which Transform or an IndexFunc has failed,
// in the order of their keys; see [Quarantine].
func (s *SharedInformer[T]) Quarantined() []Quarantined[T] {
	all := s.core.quarantined()
	list := make([]Quarantined[T], len(all))
	for i, q := range all {
		list[i] = Quarantined[T]{typed[T](q.object), q.err}
	}
	return list
}

// AddIndexers adds indexes, over the objects that are stored already too, at any
// time. Either all are added or none. They are there when it returns. Changes
// wait meanwhile, so it must not be called from a function of the configuration.
//
// Errors: [ErrIndexConflict] for a name that is taken, [store.ErrIndexFunc] for
// a function that is nil, [ErrClosed]. A function that fails for some object is
// a matter of Config.ItemErrors.
func (s *SharedInformer[T]) AddIndexers(indexers store.Indexers[T]) error {
	return s.core.addIndexers(untypedIndexers(indexers))
}

// AddEventHandler adds a handler, at any time: the handler starts with the state as
// it is then, and is called for every change after it. The same handler may be
// added several times. AddEventHandler returns at once.
//
// Errors: [ErrNilHandler], [ErrConfig], [ErrClosed].
func (s *SharedInformer[T]) AddEventHandler(handler EventHandler[T], opts HandlerOptions) (*Registration, error) {
	if handler == nil {
		return nil, ErrNilHandler
	}
	return s.core.addHandler(func(n notification) { notify(handler, n) }, opts.named())
}

// Subscribe is [SharedInformer.AddEventHandler] for a function that gets whole
// notifications, with their cause.
func (s *SharedInformer[T]) Subscribe(handle func(Notification[T]), opts HandlerOptions) (*Registration, error) {
	if handle == nil {
		return nil, ErrNilHandler
	}
	return s.core.addHandler(func(n notification) { handle(typedNotification[T](n)) }, opts.named())
}

// Overlay returns an empty overlay that holds at most limit writes, of which
// those with the lowest revisions go first; zero means [DefaultOverlay].
func (s *SharedInformer[T]) Overlay(limit int) *Overlay[T] { return &Overlay[T]{s.core.overlay(limit)} }

// Name returns the informer's name.
func (s *SharedInformer[T]) Name() string { return s.core.name() }

// Host returns what the informer runs on.
func (s *SharedInformer[T]) Host() *engine.Host { return s.core.hostOf() }

// Stats returns what the informer has and has done. It never blocks.
func (s *SharedInformer[T]) Stats() Stats { return s.core.stats() }

// Err returns why the informer ended: [ErrClosed], an [*ItemError] under
// [Fail], or a final [*SourceError], after which it can still be read. Nil while
// it goes on.
func (s *SharedInformer[T]) Err() error { return s.core.err() }

// HasSynced reports whether the first list of the source can be read.
func (s *SharedInformer[T]) HasSynced() bool { return s.Revision() > 0 }

// SyncedSignal returns a channel that is closed when the informer has synced, or
// will never: see [SharedInformer.HasSynced].
func (s *SharedInformer[T]) SyncedSignal() <-chan struct{} { return s.core.syncedSignal() }

// Synced blocks until the first list of the source can be read. Whether a handler
// has handled it is another matter: see [Registration.Synced].
//
// Errors: [ErrNotSynced], with ctx's cause if that ended the wait, and with what
// is wrong with the source: a *[SourceError] for its last error, or why the
// informer ended.
func (s *SharedInformer[T]) Synced(ctx context.Context) error { return s.core.synced(ctx) }

// Revision returns the revision that can be read; zero before the first list.
func (s *SharedInformer[T]) Revision() store.Revision { return s.Snapshot().Revision() }

// WaitForRevision blocks until what was written at revision rev, or before, can
// be read: read your own writes. Handlers may be notified later. It waits as
// long as ctx lets it. In a deterministic run it must not be called from a
// handler.
//
// Errors: ctx's cause, with the source's last error, if there is one; why the
// informer ended.
func (s *SharedInformer[T]) WaitForRevision(ctx context.Context, rev store.Revision) error {
	return s.core.waitForRevision(ctx, rev)
}

// Stop begins to end the informer, as Close does, but waits for nothing. So it
// may be called from a handler and from the functions of the configuration. A
// host of the informer's own is closed when everything has ended, however long
// that takes.
func (s *SharedInformer[T]) Stop() { s.core.stop() }

// Close ends the informer: its stream, and its handlers, which are not called
// again once they have returned. It waits until all that is gone; the copy can
// still be read. Closing again waits again.
//
// A handler, or a function of the configuration, must call Stop instead: Close
// would wait for the function that calls it.
//
// If a handler does not return within the host's CloseTimeout, the error is a
// [*CloseError] that names it. What is left ends as after Stop.
func (s *SharedInformer[T]) Close() error { return s.core.close() }
