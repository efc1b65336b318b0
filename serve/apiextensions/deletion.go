package apiextensions

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// finish deletes the objects of a definition that is being deleted, and then lets it go. It writes
// the status first, which fails if the definition has gone already: the objects would be those of
// another definition of its name.
func (d *Definitions) finish(ctx context.Context, o *object) (controller.Result, error) {
	k := d.kinds[o.GetName()]
	if k == nil && !d.mayHaveObjects(o) {
		return controller.Result{}, d.release(ctx, o)
	}
	if err := d.setStatus(ctx, o, nil, condition{"Terminating", true, "InstanceDeletionInProgress", "CustomResource deletion is in progress"}); err != nil {
		return controller.Result{}, err
	}
	if again, err := d.empty(ctx, o, k); err != nil || again > 0 {
		return controller.Result{RequeueAfter: again}, err
	}
	var unclosed error
	if k != nil {
		unclosed = d.remove(ctx, k) // it is gone nevertheless
	}
	return controller.Result{}, errors.Join(unclosed, d.release(ctx, o))
}

// mayHaveObjects reports whether a definition that is not served may have objects in storage that
// lasts: it was served before, and what has its name now is not another kind.
func (d *Definitions) mayHaveObjects(o *object) bool {
	return accepted(o).Plural != "" && !slices.ContainsFunc(d.server.Kinds(), func(k registry.Kind) bool {
		return k.GroupResource().String() == o.GetName()
	})
}

// empty deletes objects of a definition, which is served as k, nil if it is not, and returns the time
// after which it is to be called again, zero if all are gone. Storage that it opens itself is not opened
// again for each part of the objects, so it deletes all of those at once.
func (d *Definitions) empty(ctx context.Context, o *object, k *kind) (again time.Duration, err error) {
	clock := d.cfg.Host.Clock()
	if k != nil {
		return k.empty(ctx, clock)
	}
	if k, err = d.openUnserved(ctx, o); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, k.end(ctx)) }()
	for again = continueAfter; err == nil && again == continueAfter; {
		again, err = k.empty(ctx, clock)
	}
	return again, err
}

// release lets a definition go whose objects are gone. It may have gone already.
func (d *Definitions) release(ctx context.Context, o *object) error {
	_, _, err := d.store.Update(ctx, o.GetName(), func(old *engine.Object[object]) (object, error) {
		released := *old.Value.DeepCopy()
		released.SetFinalizers(slices.DeleteFunc(released.GetFinalizers(), func(f string) bool { return f == cleanup }))
		return released, nil
	}, writeTo(o))
	if err = orGone(err); errors.Is(err, errGone) {
		return nil
	}
	return err
}
