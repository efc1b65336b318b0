package apiextensions

import (
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// condition is one of the conditions that the controller sets.
type condition struct {
	kind            string
	holds           bool
	reason, message string
}

// setStatus sets conditions of a definition, and the names that it has, unless they are nil.
// Conditions of others stay. The error is [errGone] if the definition has gone.
func (d *Definitions) setStatus(ctx context.Context, of *object, names map[string]any, conditions ...condition) error {
	_, err := d.store.UpdateStatus(ctx, of.GetName(), func(old *engine.Object[object]) (object, error) {
		o := *old.Value.DeepCopy()
		status, _ := o.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		for _, c := range conditions {
			d.setCondition(status, c)
		}
		if names != nil {
			status["acceptedNames"] = runtime.DeepCopyJSONValue(names)
		}
		o.Object["status"] = status
		if reflect.DeepEqual(o.Object["status"], old.Value.Object["status"]) {
			return old.Value, nil
		}
		return o, nil
	}, writeTo(of))
	return orGone(err)
}

// writeTo returns the options of a write to this very definition, and no other of its name.
func writeTo(of *object) registry.WriteOptions {
	return registry.WriteOptions{Manager: "apiextensions", UID: string(of.GetUID())}
}

// errGone: the definition of a write has gone, of which the controller is told, too.
var errGone = errors.New("the definition has gone")

// orGone returns the error of a write to one definition, errGone if that is why.
func orGone(err error) error {
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrConflict) {
		return errGone
	}
	return err
}

// setCondition sets one condition. Its time is that of the last change of what holds.
func (d *Definitions) setCondition(status map[string]any, c condition) {
	value := "False"
	if c.holds {
		value = "True"
	}
	all, _ := status["conditions"].([]any)
	next := map[string]any{
		"type": c.kind, "status": value, "reason": c.reason, "message": c.message,
		"lastTransitionTime": d.cfg.Host.Clock().Now().UTC().Format(time.RFC3339),
	}
	for i, one := range all {
		before, _ := one.(map[string]any)
		if before["type"] != c.kind {
			continue
		}
		if before["status"] == value {
			next["lastTransitionTime"] = before["lastTransitionTime"]
		}
		all[i] = next
		return
	}
	status["conditions"] = append(all, next)
}
