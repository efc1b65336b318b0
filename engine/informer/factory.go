package informer

import (
	"cmp"
	"reflect"
	"sync"

	"github.com/watchmill/watchmill/engine"
)

// Factory shares informers by name and type: callers of [Acquire] with the same name
// get the same watch, store and indexes. The first Acquire starts the informer, the
// last release stops it. The zero value is ready to use; it is safe for concurrent
// use.
type Factory struct {
	// Host is the host of informers whose configuration has none; nil gives each
	// informer a host of its own.
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

// Acquire returns a lease of the factory's informer with that name and type. If
// there is none, it starts one with the configuration that configure returns.
// Errors are those of [New], and [ErrConfig] if configure is nil; a failed informer is not
// kept. configure must not use the factory. An informer that has ended by itself (see
// [SharedInformer.Err]) is replaced.
func Acquire[T any](f *Factory, name string, configure func() Config[T]) (*Lease[T], error) {
	if configure == nil { // which would not be found while there is such an informer
		return nil, &engine.ConfigError{Field: "configure", Problem: "is nil; give a function that returns the configuration"}
	}
	share, err := f.acquire(factoryKey{name, reflect.TypeFor[T]()}, func() settings { return configure().settings() })
	if err != nil {
		return nil, err
	}
	return &Lease[T]{&SharedInformer[T]{leased{share.shared.informer, share}}, share}, nil
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
	informer, err := newCore(cfg)
	if err != nil {
		return nil, err
	}
	if f.shared == nil {
		f.shared = make(map[factoryKey]*shared)
	}
	f.shared[key] = &shared{leases: 1, informer: informer}
	return &share{factory: f, key: key, shared: f.shared[key]}, nil
}

// giveBack releases a lease and reports whether it was the last.
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
