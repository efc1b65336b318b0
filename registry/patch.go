package registry

import (
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"
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

// Patch is a patch that has been read: RFC 6902 or RFC 7386.
type Patch struct {
	operations jsonpatch.Patch
	merge      []byte
}

// ParsePatch reads a patch. The error is a [*BadRequestError].
func ParsePatch(kind PatchType, body []byte) (*Patch, error) {
	if err := checkDepth(body); err != nil {
		return nil, err
	}
	if kind == MergePatch {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
			return nil, &BadRequestError{Reason: "the merge patch is no JSON object", Cause: err}
		}
		return &Patch{merge: body}, nil
	}
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, &BadRequestError{Reason: "the JSON patch is no list of operations: " + err.Error(), Cause: err}
	}
	if len(operations) > maxOperations {
		return nil, badRequest("the JSON patch has %d operations: at most %d are allowed", len(operations), maxOperations)
	}
	return &Patch{operations: operations}, nil
}

// Apply returns the JSON document as the patch changes it. The error is a [*PatchError].
func (p *Patch) Apply(document []byte) ([]byte, error) {
	var patched []byte
	var err error
	if p.merge != nil {
		patched, err = jsonpatch.MergePatch(document, p.merge)
	} else {
		options := jsonpatch.NewApplyOptions()
		options.AccumulatedCopySizeLimit = maxCopied
		options.SupportNegativeIndices = false
		patched, err = p.operations.ApplyWithOptions(document, options)
	}
	if err != nil {
		return nil, &PatchError{err}
	}
	return patched, nil
}
