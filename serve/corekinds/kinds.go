package corekinds

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	core "k8s.io/api/core/v1"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/internal/ownhost"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/lease"
	"github.com/watchmill/watchmill/store/backend"
)

// ErrStarted: Start was called before.
var ErrStarted = errors.New("the namespaces are looked after already")

// Kinds are the kinds, to be served. They are a [serve.Provider], and an admitter for other kinds. Make them with
// [New].
type Kinds struct {
	cfg     Config
	ownHost *ownhost.Host

	configMaps *registry.Store[core.ConfigMap]
	secrets    *registry.Store[core.Secret]
	leases     *registry.Store[lease.Lease]
	namespaces *registry.Store[core.Namespace]

	stores   []opened
	backends []backend.Backend

	mu         sync.Mutex
	closed     bool
	controller atomic.Pointer[controller.Controller[core.Namespace]] // nil before Start
	server     *serve.Server                                         // set by Start

	marks sync.Map                  // of *mark, by namespace: those that are being deleted
	looks queue.RateLimiter[string] // by namespace: when to look again for objects that finalizers keep
}

// opened is a store of any type.
type opened interface {
	serve.Provider
	Close() error
}

// New opens the storage of the kinds. Close them when done. It blocks as long as Config.Storage does.
//
// Errors: [engine.ErrConfig], those of Config.Storage, and of a closed host.
func New(ctx context.Context, cfg Config) (_ *Kinds, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	k := &Kinds{cfg: cfg.withDefaults(), looks: queue.NewExponentialRateLimiter[string](firstLook, longestPause)}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.Close())
		}
	}()
	if k.cfg.Host, k.ownHost, err = ownhost.Of(cfg.Host); err != nil {
		return nil, err
	}
	if err := k.open(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// open opens the stores.
func (k *Kinds) open(ctx context.Context) (err error) {
	if k.configMaps, err = open(ctx, k, ConfigMap()); err != nil {
		return err
	}
	if k.secrets, err = open(ctx, k, Secret()); err != nil {
		return err
	}
	leases := lease.Config()
	leases.Kind.Plural, leases.Apply = "leases", apply.New
	if k.leases, err = open(ctx, k, leases); err != nil {
		return err
	}
	if k.namespaces, err = open(ctx, k, namespaceConfig()); err != nil {
		return err
	}
	return k.openEvents(ctx)
}

// openEvents opens the stores of the two groups of events over the same objects.
func (k *Kinds) openEvents(ctx context.Context) error {
	older, newer, err := eventConfigs()
	if err != nil {
		return err
	}
	older.TTL, newer.TTL = k.cfg.EventTTL, k.cfg.EventTTL
	if _, err := open(ctx, k, older); err != nil {
		return err
	}
	_, err = openOver(k, newer, k.backends[len(k.backends)-1])
	return err
}

// open opens storage for the objects of a kind, and their store.
func open[T any, P registry.Ptr[T]](ctx context.Context, k *Kinds, cfg registry.Config[T]) (*registry.Store[T], error) {
	objects, err := k.cfg.storage(ctx, cfg.Kind.GroupResource().String(), registry.Schema[T, P](cfg))
	if err != nil {
		return nil, err
	}
	k.backends = append(k.backends, objects)
	return openOver[T, P](k, cfg, objects)
}

// openOver opens the store of a kind over its objects.
func openOver[T any, P registry.Ptr[T]](k *Kinds, cfg registry.Config[T], objects backend.Backend) (*registry.Store[T], error) {
	cfg.Admit = []registry.Admitter{k}
	cfg.GarbageCollection = k.cfg.GarbageCollection
	cfg.Engine.Host, cfg.Engine.Backend, cfg.Engine.Name = k.cfg.Host, objects, cfg.Kind.GroupResource().String()
	s, err := registry.New[T, P](cfg)
	if err != nil {
		return nil, err
	}
	k.stores = append(k.stores, s)
	return s, nil
}

// Resources returns the kinds, for a server.
func (k *Kinds) Resources() (all []registry.Resource) {
	for _, s := range k.stores {
		all = append(all, s.Resources()...)
	}
	return all
}

// ConfigMaps returns the store of the ConfigMaps, for the program itself.
func (k *Kinds) ConfigMaps() *registry.Store[core.ConfigMap] { return k.configMaps }

// Secrets returns the store of the Secrets, for the program itself.
func (k *Kinds) Secrets() *registry.Store[core.Secret] { return k.secrets }

// Leases returns the store of the Leases, for the program itself.
func (k *Kinds) Leases() *registry.Store[lease.Lease] { return k.leases }

// Namespaces returns the store of the Namespaces, for the program itself.
func (k *Kinds) Namespaces() *registry.Store[core.Namespace] { return k.namespaces }

// Close closes the stores and the storage of all kinds, which ends the watches of their objects. Shut the
// server down before: requests for the kinds fail afterwards. Calling it again does nothing.
//
// Errors: those of closing, joined; a [*controller.CloseError] if the deletion of an object does not end: then
// nothing else is closed, and Close may be called again.
func (k *Kinds) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	if started := k.controller.Load(); started != nil {
		if err := started.Close(); err != nil {
			return err
		}
	}
	k.closed = true
	var errs []error
	for _, s := range k.stores {
		errs = append(errs, s.Close())
	}
	for _, b := range k.backends {
		errs = append(errs, b.Close())
	}
	return errors.Join(append(errs, k.ownHost.Close())...)
}
