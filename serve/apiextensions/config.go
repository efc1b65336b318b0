package apiextensions

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// object is the type of definitions and of the objects of all kinds that they define.
type object = unstructured.Unstructured

// Config configures the kinds that clients define. The zero value keeps everything in memory.
type Config struct {
	// Storage opens storage for the objects of a kind, by its plural with its group, such as
	// "widgets.example.com", and first for the definitions themselves, which are
	// "customresourcedefinitions.apiextensions.k8s.io". Nil means memory. The storage is closed
	// when the definition is deleted, which deletes the objects before and discards their history
	// unless the storage is shared, or by Close; if the kind is defined again, Storage is called
	// again. Storage that several servers use, even servers of one process, must say so: see
	// [backend.Traits].Shared. Storage may block until ctx is done.
	Storage func(ctx context.Context, name string, schema store.Schema) (backend.Backend, error)
	// Host runs the engines of all kinds; nil means one of their own, which Close closes. It
	// must not be deterministic.
	Host *engine.Host
	// Configure changes the configuration of each kind that is defined before it is opened, such
	// as its admitters and its engine's window. It must not change Kind, Schema and Fields,
	// nor the engine's backend and host. Nil changes nothing.
	Configure func(c *registry.Config[unstructured.Unstructured])
	// GarbageCollection is that of [registry.Config], for the definitions and for all kinds that are
	// defined.
	GarbageCollection bool
	// Rules has the rules in CEL of schemas evaluated, as package registry/crd/cel does. Nil has
	// the writer of a definition warned that they are not.
	Rules crd.Rules
	// Decoders are for bodies of definitions that are not JSON, by media type, like those of
	// [registry.Config]. Clients that send protobuf need Decoders of package registry/protobuf,
	// for the Go type of definitions, which this package does without.
	Decoders map[string]func(body []byte) ([]byte, error)
	// OnError gets what keeps a definition from being served, such as storage that cannot be
	// opened, which is tried again: each as a [*controller.ReconcileError] that names the
	// definition. It gets what ends the watch of the definitions, too, after which they are listed
	// again, as [controller.Config].OnError does. The host's logger gets it, too. It is called
	// concurrently and must not block. A definition that is refused, even for an
	// [*engine.ConfigError] of its kind, is not an error: its condition NamesAccepted says why.
	OnError func(error)
}

// reading returns the options of reading definitions.
func (c *Config) reading() crd.Options { return crd.Options{Rules: c.Rules} }

// storage opens the storage that the configuration says.
func (c *Config) storage(ctx context.Context, name string, schema store.Schema) (backend.Backend, error) {
	if c.Storage != nil {
		return c.Storage(ctx, name, schema)
	}
	return memory.New(schema, memory.Options{Clock: c.Host.Clock()})
}
