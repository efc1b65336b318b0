package informer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// SharedInformer mirrors a source and tells handlers what changes. Make one with
// [New]. All methods are safe for concurrent use.
type SharedInformer[T any] struct {
	cfg     Config[T]
	host    *engine.Host
	ownHost bool
	parting sync.Once // has the host closed after a Close from a callback
	actor   *actors.Ref[message[T]]
	inlet   inlet[T]
	source  atomic.Pointer[reflector.Ref[T]]

	// writing is held while objects change, until the change is published. It
	// keeps AddIndexers and the actor apart.
	writing   sync.Mutex
	objects   *store.ThreadSafeStore[*Object[T]]
	ingress   ingress[T]
	published atomic.Pointer[Snapshot[T]]
	waiters   waiters

	// settled is closed when the informer has synced, or will never.
	settled  chan struct{}
	settling sync.Once
	// trouble is the last error of the source since it worked.
	trouble atomic.Pointer[SourceError]
	// ended is why nothing will come any more.
	ended atomic.Pointer[error]
	// stopped is closed when the actors are gone.
	stopped  chan struct{}
	stopping sync.Once

	handlers atomic.Int64
	notified atomic.Uint64
	numbers  atomic.Uint64

	mu sync.Mutex
	// alive are the handlers that have not ended, in the order in which they
	// were added. Guarded by mu.
	alive []*listener[T]
}

// New starts an informer. It returns at once: [SharedInformer.Synced] waits for
// the first list. Close it when done.
//
// Errors: [ErrConfig]; [ErrClosed] if the host is closed.
func New[T any](cfg Config[T]) (*SharedInformer[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &SharedInformer[T]{cfg: cfg.withDefaults(), settled: make(chan struct{}), stopped: make(chan struct{})}
	s.ingress = ingress[T]{transform: cfg.Transform, identity: cfg.Identity, policy: cfg.ItemErrors, report: s.report}
	indexers, err := s.ingress.indexers(cfg.Indexers)
	if err != nil {
		return nil, &engine.ConfigError{Field: "Indexers", Problem: err.Error()}
	}
	if s.objects, err = store.NewThreadSafeStore(indexers); err != nil {
		return nil, fmt.Errorf("%w: Indexers: %w", ErrConfig, err)
	}
	s.publish(0)
	if s.host = cfg.Host; s.host == nil {
		if s.host, err = engine.NewHost(engine.HostConfig{}); err != nil {
			return nil, err
		}
		s.ownHost = true
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

// start spawns the actor. Its first message lets the Reflector in, which needs to
// know the actor.
func (s *SharedInformer[T]) start() error {
	s.inlet.held.Store(true)
	s.actor = actors.Spawn(s.host.System(), s.cfg.Name, func() actors.Behavior[message[T]] {
		return &mirror[T]{shared: s}
	}, actors.Options{Capacity: mailboxSize, OnRoom: s.room})
	s.inlet.actor = s.actor
	if !s.actor.Tell(look[T]{}) {
		return fmt.Errorf("%w: its host is closed", ErrClosed)
	}
	return nil
}

// room tells the Reflector that there is room again.
func (s *SharedInformer[T]) room() {
	if source := s.source.Load(); source != nil {
		source.Room()
	}
}

// publish shows the objects as they are, at revision rev. The caller holds
// writing.
func (s *SharedInformer[T]) publish(rev store.Revision) *Snapshot[T] {
	snapshot := &Snapshot[T]{view: s.objects.View(), revision: rev}
	s.published.Store(snapshot)
	return snapshot
}

// Snapshot returns everything that the informer knows now. It never blocks.
func (s *SharedInformer[T]) Snapshot() *Snapshot[T] { return s.published.Load() }

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
func (s *SharedInformer[T]) Lister(prefix string) Lister[T] {
	return Lister[T]{newest: s.Snapshot, prefix: prefix}
}

// Quarantined returns the objects that could not be taken as they are, in the
// order of their keys; see [Quarantine].
func (s *SharedInformer[T]) Quarantined() []Quarantined[T] { return s.ingress.quarantined() }

// AddIndexers adds indexes, over the objects that are stored already too, at any
// time. Either all are added or none. They are there when it returns. Changes
// wait meanwhile, so it must not be called from a function of the configuration.
//
// Errors: [ErrIndexConflict] for a name that is taken, [store.ErrIndexFunc] for
// a function that is nil, [ErrClosed]. A function that fails for some object is
// a matter of Config.ItemErrors.
func (s *SharedInformer[T]) AddIndexers(indexers store.Indexers[T]) error {
	if s.ended.Load() != nil {
		return ErrClosed
	}
	safe, err := s.ingress.indexers(indexers)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.objects.AddIndexers(safe); err != nil {
		return err
	}
	s.publish(s.Snapshot().revision)
	if s.ingress.failure() != nil {
		s.actor.Tell(look[T]{})
	}
	return nil
}

// Name returns the informer's name.
func (s *SharedInformer[T]) Name() string { return s.cfg.Name }

// Host returns what the informer runs on.
func (s *SharedInformer[T]) Host() *engine.Host { return s.host }

// Err returns why the informer ended: [ErrClosed], an [*ItemError] under
// [Fail], or a final [*SourceError], after which it can still be read. Nil while
// it goes on.
func (s *SharedInformer[T]) Err() error {
	if err := s.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// end notes why nothing will come any more, and lets all who wait go.
func (s *SharedInformer[T]) end(err error) {
	if s.ended.CompareAndSwap(nil, &err) {
		s.waiters.end()
		s.settle()
	}
}

// gone lets Close return.
func (s *SharedInformer[T]) gone() { s.stopping.Do(func() { close(s.stopped) }) }

// settle lets those go who wait for the first list.
func (s *SharedInformer[T]) settle() { s.settling.Do(func() { close(s.settled) }) }

// sourceFailed notes an error of the source.
func (s *SharedInformer[T]) sourceFailed(err error) {
	failed := &SourceError{Informer: s.cfg.Name, Err: err}
	s.trouble.Store(failed)
	s.report(failed)
}

// unavailable notes that the source cannot be followed, which the Reflector has
// given the reasons of, unless it is the last thing that it says.
func (s *SharedInformer[T]) unavailable(u reflector.Update[T]) {
	failed := &SourceError{Informer: s.cfg.Name, Final: u.Final, Err: u.Err}
	s.trouble.Store(failed)
	if u.Final {
		s.end(failed)
		s.report(failed)
	}
}

// report tells OnError, whose own panics go no further than the log.
func (s *SharedInformer[T]) report(err error) {
	if panicked := contained("Config.OnError", "", func() { s.cfg.OnError(err) }); panicked != nil {
		s.host.System().Logger().Error("OnError failed", "reason", panicked, "told", err)
	}
}

// await blocks until c is closed or ctx ends.
func (s *SharedInformer[T]) await(ctx context.Context, c <-chan struct{}) error {
	return s.host.Await(ctx, c)
}
