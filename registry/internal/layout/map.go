package layout

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/store"
)

// managedFields is the name of that field of metadata.
const managedFields = "managedFields"

// mapLayout is the layout of a value that is a map.
type mapLayout struct {
	schema *store.Schema
	kind   schema.GroupVersionKind
}

func (l *mapLayout) of(o *store.Object) map[string]any {
	return l.schema.Pointer(o).(content).UnstructuredContent()
}

func (l *mapLayout) set(o *store.Object, fields map[string]any) {
	l.schema.Pointer(o).(content).SetUnstructuredContent(fields)
}

func (l *mapLayout) Decode(body []byte, o *store.Object) (strict []error, err error) {
	fields := map[string]any{}
	if strict, err = kjson.UnmarshalStrict(body, &fields); err != nil {
		return nil, err
	}
	for _, name := range []string{"apiVersion", "kind"} {
		switch fields[name].(type) {
		case nil, string:
		default: // which the accessors would take for none
			return nil, fmt.Errorf("%s must be a string", name)
		}
	}
	if meta, present := fields["metadata"]; present {
		clean, unknown, err := Metadata(meta)
		if err != nil {
			return nil, err
		}
		if fields["metadata"] = clean; clean == nil { // which the accessors could not set a field of
			delete(fields, "metadata")
		}
		strict = append(strict, unknown...)
	}
	l.set(o, fields)
	return strict, nil
}

// Metadata returns an object's metadata as decoding it to a struct leaves it, without what the accessors of
// a map cannot read, and its unknown fields, each a [kjson.FieldError]. Where nothing else has to change,
// times keep their zone and their fractions of seconds, which Kubernetes drops. The error is that of a
// field of a wrong type, which the accessors would ignore. given is not changed, and is returned itself if
// nothing has to be left out.
func Metadata(given any) (clean any, unknown []error, err error) {
	if fields, isObject := given.(map[string]any); isObject && isPlain(fields) {
		return given, nil, nil
	}
	return decodedMetadata(given)
}

// decodedMetadata is Metadata by decoding given to a struct.
func decodedMetadata(given any) (clean any, unknown []error, err error) {
	text, err := json.Marshal(map[string]any{"metadata": given})
	if err != nil {
		return nil, nil, err
	}
	var of struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if unknown, err = kjson.UnmarshalStrict(text, &of); err != nil {
		return nil, nil, err
	}
	fields, isObject := given.(map[string]any)
	if !isObject || len(unknown) == 0 && isCanonical(fields) {
		return given, unknown, nil
	}
	canonical, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&of.Metadata)
	if err != nil {
		return nil, nil, err
	}
	if entries, isList := fields[managedFields].([]any); isList && len(entries) == 0 {
		canonical[managedFields] = entries // which resets them, but is left out of a struct's JSON
	}
	return canonical, unknown, nil
}

// isCanonical reports whether a struct decoded from the fields would be encoded as the same
// fields: none is empty, or has null in it.
func isCanonical(fields map[string]any) bool {
	for _, value := range fields {
		if isEmpty(value) || hasNull(value) {
			return false
		}
	}
	return true
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, member := range v {
			if hasNull(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
}

func (l *mapLayout) Clone(o *store.Object) *store.Object {
	c := l.schema.New()
	l.set(c, runtime.DeepCopyJSON(l.of(o)))
	return c
}

func (l *mapLayout) Draft(o *store.Object) *store.Object { return l.Clone(o) }

func (l *mapLayout) DeepClone(o *store.Object) (*store.Object, error) { return l.Clone(o), nil }

func (l *mapLayout) TakeStatus(to, from *store.Object) {
	if from != nil {
		if status, present := l.of(from)["status"]; present {
			l.of(to)["status"] = runtime.DeepCopyJSONValue(status)
			return
		}
	}
	delete(l.of(to), "status")
}

func (l *mapLayout) SameSpec(a, b *store.Object) bool {
	spec := func(o *store.Object) map[string]any {
		fields := maps.Clone(l.of(o))
		for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
			delete(fields, name)
		}
		return fields
	}
	return equality.Semantic.DeepEqual(spec(a), spec(b))
}

func (l *mapLayout) SameStatus(a, b *store.Object) bool {
	return equality.Semantic.DeepEqual(l.of(a)["status"], l.of(b)["status"])
}

func (l *mapLayout) Encode(o *store.Object, resourceVersion string, lean bool) ([]byte, error) {
	fields, err := l.Fields(o, resourceVersion)
	if err != nil {
		return nil, err
	}
	if lean {
		delete(fields["metadata"].(map[string]any), managedFields) // of a clone
	}
	return json.Marshal(fields)
}

func (l *mapLayout) Fields(o *store.Object, resourceVersion string) (map[string]any, error) {
	fields := maps.Clone(l.of(o))
	meta, _ := fields["metadata"].(map[string]any)
	if meta = maps.Clone(meta); meta == nil {
		meta = map[string]any{}
	}
	if resourceVersion != "" {
		meta["resourceVersion"] = resourceVersion
	}
	fields["metadata"] = meta
	fields["apiVersion"], fields["kind"] = l.kind.ToAPIVersionAndKind()
	return fields, nil
}
