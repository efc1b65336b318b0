package patch

import (
	"errors"

	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/usercode"
)

// Merging merges a strategic merge patch into an object and returns the result. Both are JSON with integers
// as int64, and may be changed. It is code of the user's, and may panic.
type Merging func(object, patch map[string]any) (map[string]any, error)

// mergeStrategic is Apply for a strategic merge patch.
func (p *Patch) mergeStrategic(document []byte) ([]byte, error) {
	var object, patch map[string]any
	if err := errors.Join(kjson.UnmarshalCaseSensitivePreserveInts(document, &object), kjson.UnmarshalCaseSensitivePreserveInts(p.body, &patch)); err != nil {
		return nil, &SyntaxError{Reason: "the strategic merge patch does not parse: " + err.Error(), Cause: err}
	}
	var merged map[string]any
	var err error
	if panicked := usercode.Call("Config.StrategicMerge", "", func() { merged, err = p.by(object, patch) }); panicked != nil {
		return nil, panicked
	}
	if err != nil {
		return nil, err
	}
	patched, _, err := EncodeMerged(merged)
	return patched, err
}
