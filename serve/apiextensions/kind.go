package apiextensions

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/store/backend"
)

// drainTimeout is how long the watches of a kind that goes may take to read its last events.
const drainTimeout = 5 * time.Second

// kind is a kind that is defined and served.
type kind struct {
	// name is that of the definition; uid and spec are of what it was made from.
	name       string
	uid        types.UID
	spec       any
	definition *crd.Definition
	store      *registry.Store[object]
	objects    backend.Backend
	// terminating: the definition is being deleted, and no objects are created any more.
	terminating *atomic.Bool
}

// open makes the kind of a definition. Its objects are those of before, the kind that it takes
// the place of, or, if that is nil, those of storage.
func (d *Definitions) open(ctx context.Context, o *object, definition *crd.Definition, before *kind) (*kind, error) {
	k := &kind{name: o.GetName(), uid: o.GetUID(), spec: o.Object["spec"], definition: definition, terminating: new(atomic.Bool)}
	cfg := definition.Config()
	cfg.Apply = newApplier
	if d.cfg.Configure != nil {
		d.cfg.Configure(&cfg)
	}
	cfg.Admit = append([]registry.Admitter{registry.AdmitFunc(k.admit)}, cfg.Admit...)
	if before != nil {
		k.objects, k.terminating = before.objects, before.terminating
	} else {
		var err error
		if k.objects, err = d.cfg.storage(ctx, k.name, registry.Schema(cfg)); err != nil {
			return nil, err
		}
	}
	cfg.Engine.Backend, cfg.Engine.Host = k.objects, d.cfg.Host
	var err error
	if k.store, err = registry.New(cfg); err != nil {
		if before == nil {
			err = errors.Join(err, k.objects.Close())
		}
		return nil, err
	}
	return k, nil
}

// newApplier makes the server-side apply of a kind: by its schema or, if that is of no use for
// it, one that takes every list for one field.
func newApplier(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
	if a, err := apply.New(kind, schema); err == nil {
		return a, nil
	}
	return apply.Deduced(kind, schema)
}

// admit refuses to create objects of a kind that is going.
func (k *kind) admit(_ context.Context, a *registry.Admission) error {
	if a.Operation != registry.OperationCreate || !k.terminating.Load() {
		return nil
	}
	refused := apierrors.NewMethodNotSupported(a.Kind.GroupResource(), "create")
	refused.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
	return refused
}

// empty deletes the objects of the kind, and reports whether all are gone: those with finalizers
// are not.
func (k *kind) empty(ctx context.Context) (gone bool, err error) {
	k.terminating.Store(true)
	if _, err := k.store.DeleteAll(ctx, engine.ListOptions{}, registry.DeleteOptions{}); err != nil {
		return false, err
	}
	left, err := k.store.Engine().List(ctx, engine.ListOptions{Limit: 1})
	return err == nil && len(left.Items) == 0, err
}

// drain gives the watches of the kind their last events, but for those that take longer than
// drainTimeout, and closes the kind, and not its storage.
func (k *kind) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	err := outsideTurn(func() error { return k.store.Engine().Drain(ctx) })
	if errors.Is(err, engine.ErrUndelivered) {
		return nil
	}
	return err
}

// close closes the kind and its storage.
func (k *kind) close() error { return errors.Join(k.closeStore(), k.objects.Close()) }

// closeStore closes the kind, and not its storage.
func (k *kind) closeStore() error { return outsideTurn(k.store.Close) }

// outsideTurn calls a function on a goroutine of its own, and waits for it: in the controller's
// turn the Close of an engine would not wait.
func outsideTurn(f func() error) error {
	done := make(chan error)
	go func() { done <- f() }()
	return <-done
}
