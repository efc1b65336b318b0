package informer

import (
	"cmp"
	"reflect"
	"sync"

	"github.com/watchmill/watchmill/engine"
)

// Factory shares informers: callers that want the same one get the same stream,
// store and indexes. The first to [Acquire] one starts it, the last to release
// it stops it. The zero value is ready to use; it is safe for concurrent use.
type Factory struct {
	// Host is what the informers run on if their own configuration has none; nil
	// gives each one of its own.
	Host *engine.Host

	mu     sync.Mutex
	shared map[factoryKey]*shared
}

// factoryKey: informers of different types do not collide.
type factoryKey struct {
	name string
	of   reflect.Type
}

// shared is an informer, of the key's type, and how many leases there are.
type shared struct {
	leases   int
	informer informerCore
}

// Lease is a share in an informer. It has all the informer's methods, but that
// Close and Stop release the share.
type Lease[T any] struct {
	*SharedInformer[T]
	share *share
}

// share is a [Lease] whatever the type of the objects.
type share struct {
	factory  *Factory
	key      factoryKey
	shared   *shared
	release  sync.Once
	closeErr error
}

// Acquire returns a share in the factory's informer of that name and type. If
// there is none, configure says how to make one; otherwise it is not called.
// Errors are those of [New]; nothing is kept of an informer that failed to
// start. configure must not use the factory. An informer that has ended by itself
// (see [SharedInformer.Err]) is replaced.
func Acquire[T any](f *Factory, name string, configure func() Config[T]) (*Lease[T], error) {
	share, err := f.acquire(factoryKey{name, reflect.TypeFor[T]()}, func() settings { return configure().settings() })
	if err != nil {
		return nil, err
	}
	return &Lease[T]{&SharedInformer[T]{share.shared.informer}, share}, nil
}

func (f *Factory) acquire(key factoryKey, configure func() settings) (*share, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.shared[key]; known != nil && known.informer.err() == nil {
		known.leases++
		return &share{factory: f, key: key, shared: known}, nil
	}
	cfg := configure()
	if cfg.host == nil {
		cfg.host = f.Host
	}
	cfg.name = cmp.Or(cfg.name, key.name)
	informer, err := start(cfg)
	if err != nil {
		return nil, err
	}
	if f.shared == nil {
		f.shared = make(map[factoryKey]*shared)
	}
	f.shared[key] = &shared{leases: 1, informer: informer}
	return &share{factory: f, key: key, shared: f.shared[key]}, nil
}

// Close gives the share back. The last one stops the informer, and waits for
// that as [SharedInformer.Close] does. Closing again does nothing, and returns
// what the first call did.
func (l *Lease[T]) Close() error { return l.share.end(informerCore.close) }

// Stop gives the share back without waiting; see [SharedInformer.Stop].
func (l *Lease[T]) Stop() {
	_ = l.share.end(func(informer informerCore) error {
		informer.stop()
		return nil
	})
}

// end gives the share back, once, and if it is the last ends the informer.
func (s *share) end(last func(informerCore) error) error {
	s.release.Do(func() {
		if s.factory.giveBack(s.key, s.shared) {
			s.closeErr = last(s.shared.informer)
		}
	})
	return s.closeErr
}

// giveBack reports whether it was the last lease.
func (f *Factory) giveBack(key factoryKey, s *shared) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.leases--; s.leases > 0 {
		return false
	}
	if f.shared[key] == s {
		delete(f.shared, key)
	}
	return true
}

// Len returns the number of informers that are in use.
func (f *Factory) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.shared)
}
