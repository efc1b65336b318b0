package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	mergepatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/registry/internal/jsonlimit"
	"github.com/watchmill/watchmill/usercode"
)

// Bounds of JSON patches. Each operation that inserts an item into a list, or removes one, moves the items of
// the list, and each that sets a field of an object, or removes one, compares the names of its fields: maxMoved
// and maxCompared are the most for which there is time, some seconds.
const (
	maxOperations = 10_000
	maxCopied     = 3 << 20
	maxMoved      = 200_000_000
	maxCompared   = 500_000_000
)

// PatchType is a media type of patches.
type PatchType string

// The patches that can be applied.
const (
	JSONPatch  PatchType = "application/json-patch+json"
	MergePatch PatchType = "application/merge-patch+json"
	// StrategicPatch needs [Config].StrategicMerge.
	StrategicPatch PatchType = "application/strategic-merge-patch+json"
)

// Patch is a patch that has been read: RFC 6902, RFC 7386, or a strategic merge patch. It is
// immutable.
type Patch struct {
	body       []byte
	kind       PatchType
	operations jsonpatch.Patch // of a JSON patch
	merge      Merge           // of a strategic merge patch
}

// ParsePatch reads a patch for the resource. The error is a [*BadRequestError], even for a
// strategic merge patch where StrategicMerge is nil, and otherwise as for the function ParsePatch.
func (i *Info) ParsePatch(kind PatchType, body []byte) (*Patch, error) {
	return parsePatch(kind, body, i.StrategicMerge)
}

// ParsePatch reads a JSON patch or a merge patch. The error is a [*BadRequestError], even for a
// patch of more than 10,000 operations, or one that nests more than 100 lists and objects, or too many
// fields below names of more than 16 KiB, and for a strategic merge patch, which [Info.ParsePatch]
// reads.
func ParsePatch(kind PatchType, body []byte) (*Patch, error) { return parsePatch(kind, body, nil) }

// parsePatch reads a patch; merge is nil where strategic merge patches are refused.
func parsePatch(kind PatchType, body []byte, merge Merge) (*Patch, error) {
	if err := checkSent(body); err != nil {
		return nil, err
	}
	switch {
	case kind == JSONPatch:
		return parseOperations(body)
	case kind == StrategicPatch && merge == nil:
		return nil, badRequest("the resource takes no strategic merge patches: send a merge patch or a JSON patch")
	case kind == MergePatch, kind == StrategicPatch:
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
			return nil, &BadRequestError{Reason: "the merge patch is not a JSON object", Cause: err}
		}
		return &Patch{body: body, kind: kind, merge: merge}, nil
	}
	return nil, badRequest("%q is not a media type of patches: send a JSON patch (%s) or a merge patch (%s)", kind, JSONPatch, MergePatch)
}

func parseOperations(body []byte) (*Patch, error) {
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, &BadRequestError{Reason: "the JSON patch is not a list of operations: " + err.Error(), Cause: err}
	}
	if len(operations) > maxOperations {
		return nil, badRequest("the JSON patch has %d operations: at most %d are allowed", len(operations), maxOperations)
	}
	replaceWhatIsMissing(operations)
	return &Patch{body: body, kind: JSONPatch, operations: operations}, nil
}

// operationAdd is the name of an operation as JSON.
var operationAdd = json.RawMessage(`"add"`)

// replaceWhatIsMissing has replace set a field that its object does not have, as in Kubernetes, although
// RFC 6902 demands that it is there. It becomes an add, which inserts items into lists, though: so a
// field whose name may be that of an item, a number, has to be there.
func replaceWhatIsMissing(operations jsonpatch.Patch) {
	for _, operation := range operations {
		path, err := operation.Path()
		if operation.Kind() == "replace" && path != "" && !strings.HasSuffix(path, "/-") && inList(path, err) == 0 {
			operation["op"] = &operationAdd
		}
	}
}

// Check refuses a patch that has fields more than once, or operations with unknown fields, or
// warns of these, or ignores them, as opts.Validation says. The error is a [*BadRequestError].
// Fields that the kind does not have are found when the patched object is stored.
func (p *Patch) Check(opts WriteOptions) error {
	if opts.Validation == IgnoreUnknown {
		return nil
	}
	var strict []error
	var err error
	if p.kind == JSONPatch {
		strict, err = kjson.UnmarshalStrict(p.body, &[]operation{})
	} else {
		strict, err = kjson.UnmarshalStrict(p.body, &map[string]any{})
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

// Apply returns the JSON document as the patch changes it. The document stays as it is. As in
// Kubernetes, an operation replace sets a field that is missing, unless its name is a number, and a
// negative index counts from the end of a list. An operation test of a list that has null in it fails.
//
// The error is a [*PatchError], even if the operations copy more than 3 MiB, insert and remove too many
// items in lists that are too long, or are too many for an object of very many fields. A
// [*BadRequestError] of [Config].StrategicMerge, or its panic as a [*usercode.PanicError], is returned
// as it is. It is safe for concurrent use.
func (p *Patch) Apply(document []byte) (patched []byte, err error) {
	if p.kind == StrategicPatch {
		return p.applyStrategic(document)
	}
	panicked := usercode.Call("jsonpatch", "", func() { patched, err = p.apply(document) })
	switch {
	case panicked != nil: // the library cannot compare such lists
		return nil, &PatchError{errors.New("an operation cannot be evaluated, such as a test of a list with null in it")}
	case err != nil:
		return nil, &PatchError{err}
	}
	return patched, nil
}

func (p *Patch) apply(document []byte) ([]byte, error) {
	if p.kind == MergePatch {
		return mergepatch.MergePatch(document, p.body) // in time that grows with their fields, unlike that of v5
	}
	items, fields := jsonlimit.Longest(document)
	newItems, newFields := jsonlimit.Longest(p.body)
	if err := affordable(p.operations, max(items, newItems), max(fields, newFields)); err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxCopied
	options.SupportNegativeIndices = true
	return p.operations.ApplyWithOptions(document, options)
}
