package patch

import (
	"encoding/json"
	"errors"

	jsonpatch "github.com/evanphx/json-patch/v5"
	mergepatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/usercode"
)

// Patch is a patch that has been read. It is immutable, and safe for concurrent use.
type Patch struct {
	body []byte
	kind kind
	list jsonpatch.Patch // of operations
	by   Merging         // of a strategic merge patch
}

type kind int

const (
	operations kind = iota
	merge
	strategic
)

// SyntaxError reports a patch, or a document, that cannot be read.
type SyntaxError struct {
	Reason string
	Cause  error // nil if Reason has it all
}

func (e *SyntaxError) Error() string { return e.Reason }

// Unwrap returns Cause.
func (e *SyntaxError) Unwrap() error { return e.Cause }

// Merge reads a merge patch. The error is a [*SyntaxError].
func Merge(body []byte) (Patch, error) { return readFields(Patch{body: body, kind: merge}) }

// Strategic reads a strategic merge patch. The error is a [*SyntaxError].
func Strategic(body []byte, by Merging) (Patch, error) {
	return readFields(Patch{body: body, kind: strategic, by: by})
}

// readFields returns p, whose body has to be an object.
func readFields(p Patch) (Patch, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(p.body, &fields); err != nil || fields == nil {
		return Patch{}, &SyntaxError{Reason: "the merge patch is not a JSON object", Cause: err}
	}
	return p, nil
}

// Strict returns the fields that the patch has more than once, and unknown fields of its operations. err
// says that it does not parse.
func (p *Patch) Strict() (strict []error, err error) {
	if p.kind == operations {
		return kjson.UnmarshalStrict(p.body, &[]operation{})
	}
	return kjson.UnmarshalStrict(p.body, &map[string]any{})
}

// Apply returns the document as the patch changes it. The document stays as it is. An operation replace
// sets a field that is missing, unless its name is a number, and a negative index counts from the end of a
// list. An operation test of a list that has null in it fails.
//
// The error says why the patch does not apply to the document. That of a strategic merge patch may also be a
// [*SyntaxError], or that of its [Merging], or a panic there as a [*usercode.PanicError].
func (p *Patch) Apply(document []byte) (patched []byte, err error) {
	if p.kind == strategic {
		return p.mergeStrategic(document)
	}
	panicked := usercode.Call("jsonpatch", "", func() {
		if p.kind == merge {
			patched, err = mergepatch.MergePatch(document, p.body) // in time that grows with their fields, unlike that of v5
		} else {
			patched, err = p.operate(document)
		}
	})
	if panicked != nil { // the library cannot compare such lists
		return nil, errors.New("an operation cannot be evaluated, such as a test of a list with null in it")
	}
	return patched, err
}
