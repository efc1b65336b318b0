package registry

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/usercode"
)

// Bounds of JSON patches.
const (
	maxOperations = 10_000
	maxCopied     = 3 << 20
)

// PatchType is a media type of patches.
type PatchType string

// The patches that can be applied.
const (
	JSONPatch  PatchType = "application/json-patch+json"
	MergePatch PatchType = "application/merge-patch+json"
)

// Patch is a patch that has been read: RFC 6902 or RFC 7386. It is immutable.
type Patch struct {
	body       []byte
	merges     bool            // it is a merge patch
	operations jsonpatch.Patch // if it is none
}

// ParsePatch reads a patch. The error is a [*BadRequestError], also for a patch of more than
// 10,000 operations, or one that nests more than 100 lists and objects.
func ParsePatch(kind PatchType, body []byte) (*Patch, error) {
	if err := checkDepth(body); err != nil {
		return nil, err
	}
	if kind == MergePatch {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
			return nil, &BadRequestError{Reason: "the merge patch is no JSON object", Cause: err}
		}
		return &Patch{body: body, merges: true}, nil
	}
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, &BadRequestError{Reason: "the JSON patch is no list of operations: " + err.Error(), Cause: err}
	}
	if len(operations) > maxOperations {
		return nil, badRequest("the JSON patch has %d operations: at most %d are allowed", len(operations), maxOperations)
	}
	return &Patch{body: body, operations: operations}, nil
}

// Check refuses a patch that has fields more than once, or operations with fields that none has,
// warns of them, or ignores them, as opts.Validation says. The error is a [*BadRequestError]. What
// the kind does not have is found when the patched object is stored.
func (p *Patch) Check(opts WriteOptions) error {
	if opts.Validation == IgnoreUnknown {
		return nil
	}
	var strict []error
	var err error
	if p.merges {
		strict, err = kjson.UnmarshalStrict(p.body, &map[string]any{})
	} else {
		strict, err = kjson.UnmarshalStrict(p.body, &[]operation{})
	}
	if err != nil {
		return &BadRequestError{Reason: "the patch does not parse: " + err.Error(), Cause: err}
	}
	for i := range strict {
		strict[i] = fmt.Errorf("the patch: %w", strict[i])
	}
	return opts.judge(strict)
}

// operation has the fields of an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// Apply returns the JSON document as the patch changes it. The document stays as it is. The
// error is a [*PatchError], also if the operations copy more than 3 MiB. An operation test
// of a list that has null in it fails. It is safe for concurrent use.
func (p *Patch) Apply(document []byte) (patched []byte, err error) {
	panicked := usercode.Call("jsonpatch", "", func() { patched, err = p.apply(document) })
	switch {
	case panicked != nil: // the library cannot compare such lists
		return nil, &PatchError{errors.New("an operation cannot be evaluated; a test of a list with null in it is one")}
	case err != nil:
		return nil, &PatchError{err}
	}
	return patched, nil
}

func (p *Patch) apply(document []byte) ([]byte, error) {
	if p.merges {
		return jsonpatch.MergePatch(document, p.body)
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxCopied
	options.SupportNegativeIndices = false
	return p.operations.ApplyWithOptions(document, options)
}
