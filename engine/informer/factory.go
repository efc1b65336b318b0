package informer

import (
	"reflect"
	"sync"

	"github.com/watchmill/watchmill/engine"
)

// Factory shares informers: those who want the same one get the same stream,
// store and indexes. The first to [Acquire] one starts it, the last to release
// it stops it. The zero value is ready to use; it is safe for concurrent use.
type Factory struct {
	// Host is what the informers run on if their own configuration has none; nil
	// gives each one of its own.
	Host *engine.Host

	mu     sync.Mutex
	shared map[factoryKey]*tenancy
}

// factoryKey: informers of different types do not collide.
type factoryKey struct {
	name string
	of   reflect.Type
}

// tenancy is an informer, of the key's type, and how many use it.
type tenancy struct {
	users    int
	informer closer
}

type closer interface{ Close() error }

// Lease is a share in an informer. It has all the informer's methods but that
// Close releases the share.
type Lease[T any] struct {
	*SharedInformer[T]
	factory *Factory
	key     factoryKey
	tenancy *tenancy
	release sync.Once
	err     error
}

// Acquire returns a share in the factory's informer of that name and type. If
// there is none, configure says how to make one; otherwise it is not called.
// Errors are those of [New]; nothing is kept of an informer that failed to
// start. configure must not use the factory. One that has ended by itself (see [SharedInformer.Err]) is replaced.
func Acquire[T any](f *Factory, name string, configure func() Config[T]) (*Lease[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := factoryKey{name, reflect.TypeFor[T]()}
	if t := f.shared[key]; t != nil {
		if s := t.informer.(*SharedInformer[T]); s.Err() == nil {
			t.users++
			return &Lease[T]{SharedInformer: s, factory: f, key: key, tenancy: t}, nil
		}
	}
	cfg := configure()
	if cfg.Host == nil {
		cfg.Host = f.Host
	}
	if cfg.Name == "" {
		cfg.Name = name
	}
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if f.shared == nil {
		f.shared = make(map[factoryKey]*tenancy)
	}
	t := &tenancy{users: 1, informer: s}
	f.shared[key] = t
	return &Lease[T]{SharedInformer: s, factory: f, key: key, tenancy: t}, nil
}

// Close gives the share back. The last one stops the informer, and waits for
// that as [SharedInformer.Close] does. Closing again does nothing, and returns
// what the first call did.
func (l *Lease[T]) Close() error {
	l.release.Do(func() {
		if l.factory.leave(l.key, l.tenancy) {
			l.err = l.SharedInformer.Close()
		}
	})
	return l.err
}

// leave reports whether it was the last user that left.
func (f *Factory) leave(key factoryKey, t *tenancy) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.users--; t.users > 0 {
		return false
	}
	if f.shared[key] == t {
		delete(f.shared, key)
	}
	return true
}

// Len returns the number of informers that somebody uses.
func (f *Factory) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.shared)
}
