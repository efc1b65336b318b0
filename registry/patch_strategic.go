package registry

import (
	"errors"

	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// Merge merges a strategic merge patch into an object and returns the result. Both are JSON
// with integers as int64, and may be changed. A [*BadRequestError] says that the patch applies to
// no object, another error that it does not apply to this one. It is called concurrently.
type Merge func(object, patch map[string]any) (map[string]any, error)

// merges returns the merging of the kind's objects and of its scales, each nil if there is none.
func (c *Config[T]) merges() (objects, scales Merge, err error) {
	if c.StrategicMerge == nil {
		return nil, nil, nil
	}
	objects, err = c.StrategicMerge(new(T))
	if err == nil && c.Scale != nil {
		scales, err = c.StrategicMerge(new(scaleObject))
	}
	if err != nil {
		return nil, nil, &engine.ConfigError{Field: "StrategicMerge", Problem: "refuses the kind: " + err.Error()}
	}
	return objects, scales, nil
}

// applyStrategic is Apply for a strategic merge patch.
func (p *Patch) applyStrategic(document []byte) ([]byte, error) {
	var object, patch map[string]any
	if err := errors.Join(kjson.UnmarshalCaseSensitivePreserveInts(document, &object), kjson.UnmarshalCaseSensitivePreserveInts(p.body, &patch)); err != nil {
		return nil, &BadRequestError{Reason: "the strategic merge patch does not parse: " + err.Error(), Cause: err}
	}
	var merged map[string]any
	var err error
	if panicked := usercode.Call("Config.StrategicMerge", "", func() { merged, err = p.merge(object, patch) }); panicked != nil {
		return nil, panicked
	}
	switch {
	case errors.As(err, new(*BadRequestError)):
		return nil, err
	case err != nil:
		return nil, &PatchError{err}
	}
	patched, _, err := encodeMerged(merged)
	if err != nil {
		return nil, &PatchError{err}
	}
	return patched, nil
}
