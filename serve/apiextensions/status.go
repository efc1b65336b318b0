package apiextensions

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// condition is one of the conditions that the controller sets.
type condition struct {
	kind            string
	holds           bool
	reason, message string
}

// servedConditions are those of a definition whose kind is served as it is.
var servedConditions = []condition{
	{"NamesAccepted", true, "NoConflicts", "no conflicts found"},
	{"Established", true, "InitialNamesAccepted", "the initial names have been accepted"},
}

// rewriteAfter is the time after which a server writes a status again that another writer has changed.
// Servers that share storage would otherwise write as fast as they can if they disagree, as
// servers of two releases may.
const rewriteAfter = 10 * time.Second

// statusWrite is what a server has written into the status of one generation of a definition.
type statusWrite struct {
	uid        types.UID
	generation int64
	text       string
	at         time.Time
}

// repeats reports whether it is too early to write this again.
func (s statusWrite) repeats(last statusWrite) bool {
	at := last.at
	last.at = s.at
	return s == last && s.at.Sub(at) < rewriteAfter
}

// setStatus sets conditions of a definition, and the names that it has, unless they are nil.
// Conditions of others stay. The error is [errGone] if the definition has gone, and
// [errDisputed] if it is too early to write the same again.
func (d *Definitions) setStatus(ctx context.Context, of *object, names map[string]any, conditions ...condition) error {
	now := statusWrite{of.GetUID(), of.GetGeneration(), fmt.Sprint(conditions), d.cfg.Host.Clock().Now()}
	writes := false
	_, err := d.store.UpdateStatus(ctx, of.GetName(), func(old *engine.Object[object]) (object, error) {
		o := *old.Value.DeepCopy()
		status := part(o.Object, "status")
		if status == nil {
			status = map[string]any{}
		}
		for _, c := range conditions {
			setCondition(status, c, d.cfg.Host.Clock().Now())
		}
		if names != nil {
			status["acceptedNames"] = runtime.DeepCopyJSONValue(names)
		}
		o.Object["status"] = status
		writes = !reflect.DeepEqual(status, part(old.Value.Object, "status"))
		switch {
		case !writes:
			return old.Value, nil
		case now.repeats(d.wrote[of.GetName()]):
			return o, errDisputed
		}
		return o, nil
	}, writeTo(of))
	if err == nil && writes {
		d.wrote[of.GetName()] = now
	}
	return orGone(err)
}

// errDisputed: another writer has changed what this server wrote a moment ago.
var errDisputed = errors.New("another writer has changed the status")

// writeTo returns the options of a write to this very definition, and no other of its name.
func writeTo(of *object) registry.WriteOptions {
	return registry.WriteOptions{Manager: "apiextensions", UID: string(of.GetUID())}
}

// errGone: the definition of a write has gone, which the controller learns, too.
var errGone = errors.New("the definition has gone")

// orGone returns the error of a write to one definition, errGone if that is why.
func orGone(err error) error {
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrConflict) {
		return errGone
	}
	return err
}

// setCondition sets one condition. Its time is that of the last change of what holds, which is now for a new one.
func setCondition(status map[string]any, c condition, now time.Time) {
	value := "False"
	if c.holds {
		value = "True"
	}
	all, _ := status["conditions"].([]any)
	next := map[string]any{
		"type": c.kind, "status": value, "reason": c.reason, "message": c.message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
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
