package apiextensions

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/ownhost"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend"
)

// ErrStarted: Start was called before.
var ErrStarted = errors.New("the definitions are served already")

//go:embed customresourcedefinition.yaml
var manifest []byte

// Definitions are the CustomResourceDefinitions of a server, and the kinds that they define.
// Make them with [New].
type Definitions struct {
	cfg     Config
	ownHost *ownhost.Host
	store   *registry.Store[object]
	objects backend.Backend

	mu     sync.Mutex
	closed bool
	// controller is nil before Start; it may run before started is closed.
	controller *controller.Controller[object]
	started    chan struct{}

	// The controller has one worker, in whose calls alone these are used.
	server *serve.Server
	kinds  map[string]*kind // by the name of the definition
	// refused are the definitions that are not served as they are, and why.
	refused map[string]refusal
	// wrote is what was last written into the status of each definition.
	wrote map[string]statusWrite
}

// New opens the storage of the definitions. They have no effect before Start. Close them when
// done. It blocks as long as Config.Storage does.
//
// Errors: [engine.ErrConfig], those of Config.Storage, and of a closed host.
func New(ctx context.Context, cfg Config) (_ *Definitions, err error) {
	d := &Definitions{cfg: cfg, kinds: map[string]*kind{}, refused: map[string]refusal{}, wrote: map[string]statusWrite{}, started: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if err := engine.ValidateHost("Host", cfg.Host); err != nil {
		return nil, err
	}
	if cfg.Host != nil && cfg.Host.Deterministic() {
		return nil, &engine.ConfigError{Field: "Host", Problem: "is deterministic, so that the engine of a deleted kind could not be closed; give another host, or none"}
	}
	if d.cfg.Host, d.ownHost, err = ownhost.Of(cfg.Host); err != nil {
		return nil, err
	}
	rules, err := kindOfDefinitions(cfg.reading())
	if err != nil {
		return nil, err
	}
	if d.objects, err = d.cfg.storage(ctx, rules.Kind.GroupResource().String(), registry.Schema(rules)); err != nil {
		return nil, err
	}
	rules.Apply, rules.StrategicMerge = apply.New, strategic.Untagged
	rules.Decoders, rules.GarbageCollection = cfg.Decoders, cfg.GarbageCollection
	rules.Engine.Backend, rules.Engine.Host = d.objects, d.cfg.Host
	if d.store, err = registry.New(rules); err != nil {
		return nil, err
	}
	return d, nil
}

// kindOfDefinitions returns the configuration of the kind of definitions.
func kindOfDefinitions(reading crd.Options) (registry.Config[object], error) {
	itself, err := crd.Parse(bytes.NewReader(manifest))
	if err != nil {
		return registry.Config[object]{}, err
	}
	return configOf(itself[0], reading), nil
}

// Resources returns the kind of the definitions and its status, so that Definitions are a
// [serve.Provider].
func (d *Definitions) Resources() []registry.Resource { return d.store.Resources() }

// Store returns the store of the definitions, in which a program defines kinds without a client.
func (d *Definitions) Store() *registry.Store[unstructured.Unstructured] { return d.store }

// Start makes the server serve the kinds that are defined, and from then on those that clients
// define. It returns when the kinds of the definitions that are stored are served, or ctx is
// done; one that cannot be served now, see [Config].OnError, is not waited for. The server must
// serve the definitions, too: they are among the providers of its configuration.
//
// Errors: [ErrStarted], [engine.ErrEngineClosed] after Close, an [*engine.ConfigError] if server is
// nil, and ctx's cause: then Start is still in effect.
func (d *Definitions) Start(ctx context.Context, server *serve.Server) error {
	if server == nil {
		return &engine.ConfigError{Field: "server", Problem: "is nil; give the one that serves the definitions"}
	}
	c, err := d.start(server)
	if err != nil {
		return err
	}
	return c.Settle(ctx, 0)
}

func (d *Definitions) start(server *serve.Server) (*controller.Controller[object], error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, engine.ErrEngineClosed
	case d.controller != nil:
		return nil, ErrStarted
	}
	d.server = server
	var err error
	d.controller, err = controller.New(controller.Config[object]{
		Source: d.store.Engine().Source(), Host: d.cfg.Host, Name: "definitions",
		Reconcile: d.reconcile, OnError: d.cfg.OnError,
	})
	if err != nil {
		return nil, err
	}
	close(d.started)
	return d.controller, nil
}

// Close closes the stores and the storage of all kinds, which ends the watches of their objects.
// Definitions and objects stay where storage keeps them. Shut the server down before: requests
// for the kinds fail afterwards. Calling it again does nothing.
//
// Errors: those of closing, joined; a [*controller.CloseError] if Config.Storage or another
// function does not return: then nothing else is closed, and Close may be called again.
func (d *Definitions) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if d.controller != nil {
		if err := d.controller.Close(); err != nil {
			return err
		}
	}
	d.closed = true
	var errs []error
	for _, k := range d.kinds {
		errs = append(errs, k.close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.objects != nil {
		errs = append(errs, d.objects.Close())
	}
	return errors.Join(append(errs, d.ownHost.Close())...)
}
