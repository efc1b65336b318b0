package apiextensions

import (
	"context"
	"errors"
	"reflect"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
)

// reconcile brings what is served in line with a definition. The controller calls it for one
// definition at a time. It reads the definition anew: the controller's may be of a time before the
// last call, which may have let it go.
func (d *Definitions) reconcile(ctx context.Context, name string, _ *engine.Object[object]) (result controller.Result, err error) {
	o, err := d.store.Engine().Get(ctx, name, engine.GetOptions{})
	switch {
	case errors.Is(err, engine.ErrNotFound), err == nil && isReleased(&o.Value):
		err = d.follow(ctx, name, nil)
	case err == nil:
		result, err = d.reconcileStored(ctx, &o.Value)
	}
	switch {
	case errors.Is(err, errGone):
		return controller.Result{}, nil // the controller learns of that, too
	case errors.Is(err, errDisputed):
		return controller.Result{RequeueAfter: rewriteAfter}, nil
	}
	return result, err
}

// reconcileStored is reconcile for a definition that is there. If it is being deleted, an error that keeps
// its kind from being served is not returned before the last step of the deletion: the pause after an error
// may be many times as long as a step.
func (d *Definitions) reconcileStored(ctx context.Context, o *object) (controller.Result, error) {
	unserved := d.follow(ctx, o.GetName(), o)
	if !isDeleting(o) || errors.Is(unserved, errGone) || errors.Is(unserved, errDisputed) {
		return controller.Result{RequeueAfter: d.refused[o.GetName()].again}, unserved
	}
	result, err := d.finish(ctx, o)
	if err != nil || result.RequeueAfter > continueAfter {
		err = errors.Join(unserved, err)
	}
	return result, err
}

// follow serves the kind of a definition, or stops serving it if the definition is nil.
func (d *Definitions) follow(ctx context.Context, name string, o *object) error {
	k := d.kinds[name]
	if k != nil && (o == nil || o.GetUID() != k.uid) {
		if err := d.remove(ctx, k); err != nil {
			return err
		}
		k = nil
	}
	if o == nil {
		delete(d.refused, name)
		delete(d.wrote, name)
		return d.retryRefused(ctx)
	}
	return d.serve(ctx, o, k)
}

// serve serves the kind of a definition, which is served as k now, nil if it is not.
func (d *Definitions) serve(ctx context.Context, o *object, k *kind) error {
	if k == nil || !reflect.DeepEqual(k.spec, o.Object["spec"]) {
		next, refused, err := d.renew(ctx, o, k)
		switch {
		case err != nil:
			return err
		case refused != nil:
			return d.refuse(ctx, o, *refused)
		}
		k = next
	}
	delete(d.refused, k.name)
	err := d.setStatus(ctx, o, part(part(o.Object, "spec"), "names"), servedConditions...)
	if err != nil || !k.frees {
		return err
	}
	k.frees = false
	return d.retryRefused(ctx)
}

// renew serves the kind of a definition that is new or has changed, in place of k, nil for none. refused
// is why it cannot.
func (d *Definitions) renew(ctx context.Context, o *object, k *kind) (next *kind, refused *refusal, err error) {
	definition, err := d.cfg.reading().Define(o, o)
	if err != nil { // it was stored when the rules were others
		return nil, &refusal{reason: "Invalid", message: err.Error()}, nil
	}
	if refused, err = d.conflict(ctx, o, &definition.Kind); err != nil || refused != nil {
		return nil, refused, err
	}
	next, err = d.open(ctx, o, definition, k)
	switch {
	case errors.As(err, new(*engine.ConfigError)): // and would be if it were opened again
		return nil, &refusal{reason: "Invalid", message: err.Error()}, nil
	case err != nil:
		return nil, nil, err
	}
	if k != nil && k.isReady() {
		next.awaitReady(ctx)
	}
	err = d.put(next, k)
	if wrong, is := errors.AsType[*engine.ConfigError](err); is {
		return nil, &refusal{"KindConflict", wrong.Problem, retryNameAfter}, nil
	}
	return next, nil, err
}

// put makes the server serve next in place of k, nil if that is not served. If it cannot, next is
// closed.
func (d *Definitions) put(next, k *kind) error {
	if k == nil {
		if err := d.server.Add(next); err != nil {
			return errors.Join(err, next.close())
		}
		d.kinds[next.name] = next
		return nil
	}
	if err := d.server.Replace(k, next); err != nil {
		return errors.Join(err, next.closeStores())
	}
	d.kinds[next.name] = next
	k.ending.close(d.server, k)
	return nil
}

// refuse says in the status of a definition why it is not served, or not as it is now.
func (d *Definitions) refuse(ctx context.Context, o *object, why refusal) error {
	d.refused[o.GetName()] = why
	conditions := []condition{{"NamesAccepted", false, why.reason, why.message}}
	if d.kinds[o.GetName()] == nil {
		conditions = append(conditions, condition{"Established", false, "NotAccepted", "not all names are accepted"})
	}
	return d.setStatus(ctx, o, nil, conditions...)
}

// remove stops serving a kind.
func (d *Definitions) remove(ctx context.Context, k *kind) error {
	d.server.Remove(k)
	delete(d.kinds, k.name)
	awaitUnused(ctx, lastRemoved, d.server, k)
	return errors.Join(d.retryRefused(ctx), k.drain(ctx), k.end(ctx))
}

// retryRefused has the definitions that are not served as they are reconciled again after this
// call: their names may be free now.
func (d *Definitions) retryRefused(ctx context.Context) error {
	select {
	case <-d.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for name := range d.refused {
		if err := d.controller.Enqueue(name); err != nil {
			return err
		}
	}
	return nil
}
