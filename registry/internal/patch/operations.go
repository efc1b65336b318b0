package patch

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/watchmill/watchmill/registry/internal/jsonlimit"
	"github.com/watchmill/watchmill/store/backend"
)

// Bounds of operations: their number, and how many bytes they may copy.
const (
	maxOperations = 10_000
	maxCopied     = 3 << 20
)

// operation has the fields of an operation.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// Operations reads a JSON patch. The error is a [*SyntaxError]. If there are more than 10,000 operations its cause is
// [backend.ErrTooLarge].
func Operations(body []byte) (Patch, error) {
	list, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return Patch{}, &SyntaxError{Reason: "the JSON patch is not a list of operations: " + err.Error(), Cause: err}
	}
	if len(list) > maxOperations {
		return Patch{}, &SyntaxError{Reason: fmt.Sprintf("the JSON patch has %d operations: at most %d are allowed", len(list), maxOperations), Cause: backend.ErrTooLarge}
	}
	replaceWhatIsMissing(list)
	return Patch{body: body, kind: operations, list: list}, nil
}

// operationAdd is the name of an operation as JSON.
var operationAdd = json.RawMessage(`"add"`)

// replaceWhatIsMissing has replace set a field that its object does not have, as in Kubernetes, although
// RFC 6902 demands that it is there. It becomes an add, which inserts items into lists, though: so a
// field whose name may be that of an item, a number, has to be there.
func replaceWhatIsMissing(list jsonpatch.Patch) {
	for _, operation := range list {
		path, err := operation.Path()
		if operation.Kind() == "replace" && path != "" && !strings.HasSuffix(path, "/-") && inList(path, err) == 0 {
			operation["op"] = &operationAdd
		}
	}
}

// operate returns the document as the operations change it.
func (p *Patch) operate(document []byte) ([]byte, error) {
	items, fields := jsonlimit.Longest(document)
	newItems, newFields := jsonlimit.Longest(p.body)
	if err := affordable(p.list, max(items, newItems), max(fields, newFields)); err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxCopied
	options.SupportNegativeIndices = true
	return p.list.ApplyWithOptions(document, options)
}
