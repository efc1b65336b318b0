package server

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// CoreKinds are kinds of Kubernetes itself. They look after the namespaces once they are started, and refuse to create
// objects in those that are being deleted. Package serve/corekinds has them.
type CoreKinds interface {
	serve.Provider
	registry.Admitter
	Start(ctx context.Context, server *serve.Server) error
	Close() error
}

// CoreConfig is what the server tells a program about the kinds that it is to open.
type CoreConfig struct {
	// Storage opens the storage of a kind, by its plural with its group, and Host runs its engine.
	Storage func(ctx context.Context, kind string, schema store.Schema) (backend.Backend, error)
	Host    *engine.Host
	// EventTTL is how long an event lives after its last change, zero for the default.
	EventTTL time.Duration
	// GarbageCollection: a garbage collector runs beside the server.
	GarbageCollection bool
	// OnError gets why the objects of a namespace could not be deleted.
	OnError func(error)
}

// Core are the kinds of Kubernetes itself that a program has, whose Go types weigh much.
type Core struct {
	// Open opens the kinds.
	Open func(ctx context.Context, cfg CoreConfig) (CoreKinds, error)
	// Replica returns the configuration of one of the kinds for a replica, without its schema; ok is false for
	// other kinds.
	Replica func(of registry.Kind) (cfg registry.Config[unstructured.Unstructured], ok bool)
}

// replica returns the configuration of a kind that discovery at the origin of a replica has found.
func (c *Core) replica(of registry.Kind) registry.Config[object] {
	if c != nil {
		if cfg, ok := c.Replica(of); ok {
			return cfg
		}
	}
	return registry.Config[object]{Kind: of}
}

// mayServeCore returns an error if this program has no kinds of Kubernetes itself, and is to serve them, and for a flag
// about them if it is not.
func (o *Options) mayServeCore() error {
	switch {
	case o.EventTTL != 0 && !o.CoreKinds:
		return &engine.ConfigError{Field: "--event-ttl", Problem: "is for events of --core-kinds, which is missing; give both or neither"}
	case !o.CoreKinds, o.Core != nil:
		return nil
	}
	return &engine.ConfigError{Field: "--core-kinds", Problem: "needs the types of Kubernetes, which this program does not have; use watchmill-etcd serve, which cmd/watchmill/watchmill-etcd builds"}
}

// coreKinds are the kinds of Kubernetes itself, nil if they are not served.
type coreKinds struct{ CoreKinds }

// coreKinds opens the kinds of Kubernetes itself, if they are to be served. All other kinds then ask them what may be
// created.
func (o *Options) coreKinds(ctx context.Context, d *data) (*coreKinds, error) {
	if !o.CoreKinds {
		return nil, nil
	}
	opened, err := o.Core.Open(ctx, CoreConfig{
		Storage: d.storage, Host: d.host, EventTTL: o.EventTTL, GarbageCollection: o.GarbageCollector,
		OnError: func(err error) { logControllerError(d.log, "namespaces", "what is in a namespace is not deleted", err) },
	})
	if err != nil {
		return nil, err
	}
	d.admit = []registry.Admitter{opened}
	return &coreKinds{opened}, nil
}

// providers returns what the server is to serve of them.
func (k *coreKinds) providers() []serve.Provider {
	if k == nil {
		return nil
	}
	return []serve.Provider{k}
}

// start has them delete what is in deleted namespaces, of all kinds that the server serves by now.
func (k *coreKinds) start(ctx context.Context, server *serve.Server) error {
	if k == nil {
		return nil
	}
	return k.Start(ctx, server)
}

// closeSoon closes them, as definitions.closeSoon does.
func (k *coreKinds) closeSoon() error {
	if k == nil {
		return nil
	}
	return closeSoon("the storage of the kinds of --core-kinds", k.Close)
}
