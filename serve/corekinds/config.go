package corekinds

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// DefaultEventTTL is how long events live by default, as in Kubernetes.
const DefaultEventTTL = time.Hour

// Config configures the kinds. The zero value keeps everything in memory.
type Config struct {
	// Storage opens storage for the objects of a kind, by its plural with its group: "configmaps", "secrets",
	// "namespaces", "events", which are those of both groups, and "leases.coordination.k8s.io". Nil
	// means memory. The storage is closed by Close. It may block until ctx is done. For events it must
	// be able to delete objects after a time.
	Storage func(ctx context.Context, name string, schema store.Schema) (backend.Backend, error)
	// Host runs the engines of all kinds; nil means one of their own, which Close closes.
	Host *engine.Host
	// EventTTL is how long an event lives after its last change, zero for [DefaultEventTTL].
	EventTTL time.Duration
	// GarbageCollection is that of [registry.Config], for all kinds.
	GarbageCollection bool
	// OnError gets why the objects of a namespace could not be deleted, which is tried again: as a
	// [*controller.ReconcileError] that names the namespace. It gets what ends the watch of the namespaces,
	// too, after which they are listed again, as [controller.Config].OnError does. The host's logger gets it, too.
	// It is called concurrently and must not block.
	OnError func(error)
}

// validate returns an [*engine.ConfigError] for the first field that is wrong.
func (c *Config) validate() error {
	if c.EventTTL < 0 {
		return &engine.ConfigError{Field: "EventTTL", Problem: fmt.Sprintf("is %v, which is negative; zero means an hour", c.EventTTL)}
	}
	return engine.ValidateHost("Host", c.Host)
}

// withDefaults returns the configuration with defaults, but for the host.
func (c Config) withDefaults() Config {
	c.EventTTL = cmp.Or(c.EventTTL, DefaultEventTTL)
	return c
}

// storage opens the storage that the configuration says.
func (c *Config) storage(ctx context.Context, name string, schema store.Schema) (backend.Backend, error) {
	if c.Storage != nil {
		return c.Storage(ctx, name, schema)
	}
	return memory.New(schema, memory.Options{Clock: c.Host.Clock()})
}
