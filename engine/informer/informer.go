package informer

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// SharedInformer keeps a copy of a source's objects and notifies handlers of
// changes. Make one with [New]. All methods are safe for concurrent use.
type SharedInformer[T any] struct{ core informerCore }

// informerCore is the untyped core of the façade: a [sharedInformer]. It is an
// interface to save compile time: each package that mentions SharedInformer[Pod]
// would otherwise compile the methods of every generic type reachable through
// struct fields.
type informerCore interface {
	snapshot() snapshotCore
	quarantined() []quarantined
	addIndexers(cache.Indexers[*store.Object]) error
	addHandler(handle func(notification), opts HandlerOptions) (*Registration, error)
	overlay(limit int) overlayCore
	name() string
	hostOf() *engine.Host
	err() error
	stats() Stats
	handlerInfos() []HandlerInfo
	syncedSignal() <-chan struct{}
	synced(ctx context.Context) error
	waitForRevision(ctx context.Context, rev store.Revision) error
	stop()
	close() error
}

// New starts an informer. It does not block: [SharedInformer.WaitSynced] waits for
// the first list. Close it when done.
//
// Errors: [ErrConfig]; [ErrClosed] if the host is closed.
func New[T any](cfg Config[T]) (*SharedInformer[T], error) {
	core, err := newCore(cfg.settings())
	if err != nil {
		return nil, err
	}
	return &SharedInformer[T]{core}, nil
}

// Snapshot returns the informer's current state. It never blocks.
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

// AddIndexers adds indexes over stored and future objects, at any time. Each is a function of
// an object's value, as Transform has left it. Either all are added or none. They can be used
// when it returns. Changes of this informer wait meanwhile, so it must not be called from a
// function of the configuration.
//
// Errors: [ErrIndexConflict] for a name that is taken, [cache.ErrIndexFunc] for
// a function that is nil, [ErrClosed]. Config.ItemErrors applies to a function that
// fails for an object.
func (s *SharedInformer[T]) AddIndexers(indexers cache.Indexers[T]) error {
	return s.core.addIndexers(untypedIndexers(indexers))
}

// AddEventHandler adds a handler, at any time: the handler gets the current state,
// and then every change after it. The same handler may be added several times.
// AddEventHandler does not block.
//
// Errors: [ErrNilHandler], [ErrConfig], [ErrClosed].
func (s *SharedInformer[T]) AddEventHandler(handler EventHandler[T], opts HandlerOptions) (*Registration, error) {
	if isNil(handler) {
		return nil, ErrNilHandler
	}
	return s.core.addHandler(func(n notification) { notify(handler, n) }, opts.named())
}

// Subscribe is [SharedInformer.AddEventHandler] for a function that gets whole
// notifications, with their cause. Errors are the same.
func (s *SharedInformer[T]) Subscribe(handle func(Notification[T]), opts HandlerOptions) (*Registration, error) {
	if handle == nil {
		return nil, ErrNilHandler
	}
	return s.core.addHandler(func(n notification) { handle(typedNotification[T](n)) }, opts.named())
}

// Overlay returns an empty overlay that holds at most limit writes; zero means [DefaultOverlay].
// When there are more it evicts those with the lowest revisions, until a quarter of the limit is
// free.
func (s *SharedInformer[T]) Overlay(limit int) *Overlay[T] { return &Overlay[T]{s.core.overlay(limit)} }

// Name returns the informer's name.
func (s *SharedInformer[T]) Name() string { return s.core.name() }

// Host returns the host that the informer runs on.
func (s *SharedInformer[T]) Host() *engine.Host { return s.hostOf() }

// hostOf is Host, for [WaitFor].
func (s *SharedInformer[T]) hostOf() *engine.Host { return s.core.hostOf() }

// Stats returns the informer's counters. It never blocks.
func (s *SharedInformer[T]) Stats() Stats { return s.core.stats() }

// Err returns why the informer ended: an [*ItemError] under [Fail], a final
// [*SourceError], or [ErrClosed], which wraps an [*engine.Failure] if the informer itself has
// failed, as when a Transform ends the goroutine; nil while it runs. The copy can still be
// read.
func (s *SharedInformer[T]) Err() error { return s.core.err() }

// HasSynced reports whether the first list of the source can be read.
func (s *SharedInformer[T]) HasSynced() bool { return s.Revision() > 0 }

// SyncedSignal returns a channel that is closed when the informer has synced, or
// has ended without: see [SharedInformer.HasSynced].
func (s *SharedInformer[T]) SyncedSignal() <-chan struct{} { return s.core.syncedSignal() }

// WaitSynced blocks until the first list of the source can be read. For handlers see
// [Registration.WaitSynced].
//
// Errors: [ErrNotSynced], with ctx's cause if that ended the wait, and with the
// source's last error as a [*SourceError], or the reason that the informer ended.
func (s *SharedInformer[T]) WaitSynced(ctx context.Context) error { return s.core.synced(ctx) }

// Revision returns the revision that can be read; zero before the first list.
func (s *SharedInformer[T]) Revision() store.Revision { return s.Snapshot().Revision() }

// WaitForRevision blocks until writes up to revision rev can be read (read your own writes),
// or until ctx is done; if they can be, it is not an error that ctx is done. Handlers may be
// notified later. A handler must not call it in a deterministic run, and a handler of this
// informer with the policy [Block] never.
//
// Errors: ctx's cause, with the source's last error if the source is not being followed; or
// the reason that the informer ended.
func (s *SharedInformer[T]) WaitForRevision(ctx context.Context, rev store.Revision) error {
	return s.core.waitForRevision(ctx, rev)
}

// Stop ends the informer like Close, but does not wait. So it is what a handler and
// the functions of the configuration call. A host of the informer's own
// is closed in the background when everything has ended.
func (s *SharedInformer[T]) Stop() { s.core.stop() }

// Close ends the informer: its watch, and its handlers, which are not called again
// once they have returned. It waits for them; the copy can still be read. Closing
// again waits again.
//
// In a handler, or a function of the configuration, Close does not wait for what
// calls it: it ends the informer as Stop does, and the error is a [*CloseError]
// because of [engine.ErrInHandler].
//
// If a handler does not return within the host's CloseTimeout, the error is a
// [*CloseError] that names it. The rest ends as after Stop.
func (s *SharedInformer[T]) Close() error { return s.core.close() }
