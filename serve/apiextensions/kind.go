package apiextensions

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// drainTimeout is how long the watches of a kind that is removed may take to read its last events.
const drainTimeout = 5 * time.Second

// readyWithin is how long a kind that replaces another one may take to read its objects before it is served
// all the same. Until then the other one serves them, and the other definitions wait.
const readyWithin = 20 * time.Second

// kind is a kind that is defined and served.
type kind struct {
	// name is that of the definition; uid and spec are of what it was made from.
	name string
	uid  types.UID
	spec any
	// stores are of the versions that are served, all of the same objects. If unserved, there is one,
	// by which the objects are deleted.
	stores   []*registry.Store[object]
	unserved bool
	objects  backend.Backend
	// ending closes the kinds that it has replaced.
	ending *ending
	// creations are those of objects, which end when the definition is deleted.
	creations *creations
	// emptied: its objects are gone, with its definition. Before that, last is the key of the one that
	// was deleted last, "" if none was.
	emptied bool
	last    string
	// frees: once the status of the definition says that the kind is served, names that the
	// definition had before may be free.
	frees bool
}

// open makes the kind of a definition. It takes over the objects of before, the kind that it
// replaces, or reads them from storage if before is nil. Unless it returns a kind, it leaves nothing open,
// even if a function of the configuration panics or ends the goroutine.
func (d *Definitions) open(ctx context.Context, o *object, definition *crd.Definition, before *kind) (_ *kind, err error) {
	k := &kind{name: o.GetName(), uid: o.GetUID(), spec: o.Object["spec"], frees: accepted(o).Plural != ""}
	if before != nil {
		k.objects, k.creations, k.ending = before.objects, before.creations, before.ending
	} else {
		if k.objects, err = d.cfg.storage(ctx, k.name, registry.Schema(definition.Config())); err != nil {
			return nil, err
		}
		k.creations, k.ending = &creations{shared: k.objects.Traits().Shared}, newEnding()
	}
	opened := false
	defer func() {
		switch {
		case opened:
		case before != nil:
			err = errors.Join(err, k.closeStores())
		default:
			err = errors.Join(err, k.close())
		}
	}()
	versions := definition.Versions()
	if k.unserved = len(versions) == 0; k.unserved {
		versions = []*crd.Definition{definition}
	}
	types := apply.Versions(definition.Schemas())
	for _, version := range versions {
		if err := k.openVersion(d, version, types); err != nil {
			return nil, err
		}
	}
	opened = true
	return k, nil
}

// openUnserved makes a kind of the objects of a definition that cannot be served, only to delete
// them. Its names do not matter.
func (d *Definitions) openUnserved(ctx context.Context, o *object) (*kind, error) {
	cluster := text(part(o.Object, "spec"), "scope") == "Cluster"
	cfg := registry.Config[object]{Kind: registry.Kind{Version: "v1", Kind: "Unserved", ClusterScoped: cluster}}
	objects, err := d.cfg.storage(ctx, o.GetName(), registry.Schema(cfg))
	if err != nil {
		return nil, err
	}
	cfg.Engine.Backend, cfg.Engine.Host, cfg.Engine.Name = objects, d.cfg.Host, o.GetName()
	s, err := registry.New(cfg)
	if err != nil {
		return nil, errors.Join(err, objects.Close())
	}
	return &kind{stores: []*registry.Store[object]{s}, objects: objects, creations: &creations{}, ending: newEnding()}, nil
}

// openVersion opens the store of one version. types makes the server-side apply of all versions.
func (k *kind) openVersion(d *Definitions, version *crd.Definition, types applyFunc) error {
	cfg := version.Config()
	cfg.Apply, cfg.GarbageCollection = types.orDeduced, d.cfg.GarbageCollection
	if len(k.stores) > 0 {
		cfg.Engine.Name = k.name + "/" + version.Kind.Version // the first has the name of the kind
	}
	if d.cfg.Configure != nil {
		if err := usercode.Call("Config.Configure", k.name, func() { d.cfg.Configure(&cfg) }); err != nil {
			return err
		}
	}
	cfg.Admit = append([]registry.Admitter{registry.AdmitFunc(k.admit)}, cfg.Admit...)
	cfg.Engine.Backend, cfg.Engine.Host = k.objects, d.cfg.Host
	s, err := registry.New(cfg)
	if err != nil {
		return err
	}
	k.stores = append(k.stores, s)
	return nil
}

// Resources returns the resources of all versions: a kind is a provider.
func (k *kind) Resources() (all []registry.Resource) {
	if k.unserved {
		return nil
	}
	for _, s := range k.stores {
		for _, r := range s.Resources() {
			all = append(all, counted{r, k.creations})
		}
	}
	return all
}

// applyFunc makes the server-side apply of a kind.
type applyFunc func(kind registry.Kind, schema json.RawMessage) (registry.Applier, error)

// orDeduced makes the server-side apply of a version: by its schema or, if that cannot be used,
// one that treats every list as a single field.
func (f applyFunc) orDeduced(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
	if a, err := f(kind, schema); err == nil {
		return a, nil
	}
	return apply.Deduced(kind, schema)
}

// errTerminating is why an object cannot be created.
var errTerminating = errors.New("create not allowed while custom resource definition is terminating")

// admit refuses to create objects of a kind that is being removed.
func (k *kind) admit(_ context.Context, a *registry.Admission) error {
	if a.Operation != registry.OperationCreate || k.creations.allowed() {
		return nil
	}
	return errTerminating
}

// drain gives the watches of the kind their last events, except watches that take longer
// than drainTimeout, and closes the kind, but not its storage.
func (k *kind) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	return k.each(func(s *registry.Store[object]) error {
		err := s.Engine().Drain(ctx)
		if errors.Is(err, engine.ErrUndelivered) {
			return nil
		}
		return err
	})
}

// discard has storage of this kind alone give up its history if its objects are gone: it would
// keep them for as long as it lasts. Shared storage, such as etcd, discards the history of all
// kinds by itself.
func (k *kind) discard(ctx context.Context) error {
	if !k.emptied || k.objects.Traits().Shared {
		return nil
	}
	last, err := k.objects.Revision(ctx)
	if err == nil {
		err = k.objects.Compact(ctx, last)
	}
	if errors.Is(err, store.ErrUnsupported) {
		return nil
	}
	return err
}

// end discards the history, and closes the kind and its storage, even if that panics or ends the goroutine:
// it would stay open as long as the process lasts.
func (k *kind) end(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, k.close()) }()
	return k.discard(ctx)
}

// isReady reports whether the kind has read its objects.
func (k *kind) isReady() bool {
	return !slices.ContainsFunc(k.stores, func(s *registry.Store[object]) bool { return !s.Engine().Readiness().Ready })
}

// awaitReady waits until the kind has read its objects, but no longer than readyWithin.
func (k *kind) awaitReady(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for _, s := range k.stores {
		_ = s.Engine().WaitReady(ctx) // requests get its error
	}
}

// close closes the kind, those that it has replaced, and their storage.
func (k *kind) close() error {
	return errors.Join(k.closeStores(), k.ending.finish(), k.objects.Close())
}

// closeStores closes the kind, and not its storage.
func (k *kind) closeStores() error { return k.each((*registry.Store[object]).Close) }

// each calls a function for each store, all at once, and waits. It does so on other goroutines,
// since the Close of an engine would not wait in the controller's turn.
func (k *kind) each(f func(*registry.Store[object]) error) error {
	done := make(chan error)
	for _, s := range k.stores {
		go func() { done <- f(s) }()
	}
	var errs []error
	for range k.stores {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}
