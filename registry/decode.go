package registry

import (
	"errors"
	"fmt"
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// maxDepth is how deep JSON may be nested: far more than objects need, and little
// enough for every parser.
const maxDepth = 100

// recordedDepth is how much deeper metadata.managedFields may be: four lists and objects are around
// the fields of an entry, and a field that something is in has an object to say that it is owned itself.
const recordedDepth = 5

// The parser joins the names of nested fields for each field that is repeated or unknown. The names
// of one field and of those around it may have maxPath bytes without being counted. All that have
// more may have maxPaths bytes in all. Managed fields need that: they have the items of sets as
// names, which may be long.
const (
	maxPath  = 16 << 10
	maxPaths = 16 << 20
)

// decode returns the draft of a body, with defaults.
func (f *form) decode(body []byte, opts *WriteOptions) (*store.Object, error) {
	if err := checkSent(body); err != nil {
		return nil, err
	}
	draft := f.schema.New()
	strict, err := f.layout.Decode(body, draft)
	if err != nil {
		return nil, f.undecodable("the body", err)
	}
	if err := f.checkTimes(body, draft); err != nil {
		return nil, err
	}
	if err := f.checkKind(draft); err != nil {
		return nil, err
	}
	if err := f.pruneDraft(draft, strict, opts); err != nil {
		return nil, err
	}
	f.setTypeMeta(draft)
	if err := f.defaultDraft(draft); err != nil {
		return nil, err
	}
	return draft, nil
}

// undecodable returns the error of JSON that is not of the kind, or of a panic in the
// kind's own decoding, which is not the sender's fault.
func (f *form) undecodable(what string, err error) error {
	if errors.Is(err, usercode.ErrPanic) {
		return err
	}
	return &BadRequestError{Reason: fmt.Sprintf("%s is not a valid %s: %v", what, f.kind.Kind, err), Cause: err}
}

// checkKind refuses a body whose apiVersion or kind is of another kind.
func (f *form) checkKind(draft *store.Object) error {
	of := f.typeMeta(draft)
	return checkKind(apiVersionOf(of), of.GroupVersionKind().Kind, &f.kind)
}

// checkKind refuses a body of this apiVersion and kind, either of which may be empty, unless
// it is of the kind that is wanted.
func checkKind(version, kind string, wanted *Kind) error {
	want := wanted.GroupVersionKind()
	if kind != "" && kind != want.Kind || version != "" && version != want.GroupVersion().String() {
		return badRequest("the body is of %s, but the request is for %s %s", strings.TrimSpace(version+" "+kind), want.GroupVersion(), want.Kind)
	}
	return nil
}

// apiVersionOf returns the apiVersion as it was given. The GroupVersionKind of one that does
// not parse has none.
func apiVersionOf(of schema.ObjectKind) string {
	switch of := of.(type) {
	case *metav1.TypeMeta:
		return of.APIVersion
	case interface{ GetAPIVersion() string }:
		return of.GetAPIVersion()
	}
	return of.GroupVersionKind().GroupVersion().String()
}

// judge refuses a body with unknown or repeated fields, warns of them, or ignores them,
// as o.Validation says.
func (o *WriteOptions) judge(strict []error) error {
	if len(strict) == 0 || o.Validation == IgnoreUnknown {
		return nil
	}
	if o.Validation == RefuseUnknown {
		texts := make([]string, len(strict))
		for i, err := range strict {
			texts[i] = err.Error()
		}
		return &BadRequestError{Reason: "strict decoding error: " + strings.Join(texts, ", "), Cause: errors.Join(strict...)}
	}
	for _, err := range strict {
		o.warn(err.Error())
	}
	return nil
}

var (
	errDepth = badRequest("the JSON is nested more than %d deep", maxDepth)
	errPaths = badRequest("the paths of deeply nested fields with long names have more than %d bytes in all: shorten the names", maxPaths)
)

// checkSent refuses JSON of a client that would take a parser too long, with errDepth or errPaths.
func checkSent(body []byte) error { return checkJSON(body, maxPaths) }

// checkDepth refuses JSON that is nested too deep, with errDepth.
func checkDepth(body []byte) error { return checkJSON(body, math.MaxInt) }

// checkJSON refuses JSON that is nested too deep, or whose long paths of fields have more than
// mostPaths bytes in all. It leaves invalid JSON to the parser.
func checkJSON(body []byte, mostPaths int) error {
	var at jsonPlace
	var text []byte
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			text = body[i+1:][:textSize(body[i+1:])]
			i += len(text) + 1
		case '{', '[':
			if !at.enter() {
				return errDepth
			}
		case '}', ']':
			at.leave()
		case ':':
			if at.field(text) > mostPaths {
				return errPaths
			}
		}
	}
	return nil
}

// jsonPlace is where a reader of an object's JSON is. Content of metadata.managedFields is counted
// separately: it was recorded of an object that was not refused.
type jsonPlace struct {
	depth      int
	names      [maxDepth + recordedDepth + 1]int // the sizes of the names of the fields around, by depth
	path       int                               // their sum
	inMetadata bool
	recorded   int    // 1 within metadata.managedFields, else 0
	long       [2]int // the bytes of the long paths of the object, and of those recorded
}

// enter begins an object or a list, and reports whether it may be there.
func (p *jsonPlace) enter() bool {
	p.depth++
	return p.depth <= maxDepth+p.recorded*recordedDepth
}

// leave ends an object or a list.
func (p *jsonPlace) leave() {
	p.path -= p.names[p.depth]
	p.names[p.depth] = 0
	p.depth = max(p.depth-1, 0)
}

// field begins a field, and returns how many bytes the long paths have so far.
func (p *jsonPlace) field(name []byte) (long int) {
	if p.depth == 1 {
		p.inMetadata = string(name) == metadataField
	}
	if p.depth <= 2 {
		p.recorded = 0
	}
	if p.depth == 2 && p.inMetadata && string(name) == managedField {
		p.recorded = 1
	}
	p.path += len(name) - p.names[p.depth]
	p.names[p.depth] = len(name)
	if p.path > maxPath {
		p.long[p.recorded] += p.path
	}
	return p.long[p.recorded]
}

// textSize returns how many bytes there are before the quote that ends a text.
func textSize(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}
