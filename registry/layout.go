package registry

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/store"
)

// layout knows where a value keeps its status and how the value becomes JSON. There are
// two: for structs, and for maps, whose fields are known only at run time.
type layout interface {
	// decode fills o's value from body, and returns unknown and repeated fields.
	decode(body []byte, o *store.Object) (strict []error, err error)
	// clone returns a new object with o's value, of which the metadata and the
	// status can be set without changing o.
	clone(o *store.Object) *store.Object
	// deepClone returns a new object with o's value, which shares nothing with o.
	deepClone(o *store.Object) (*store.Object, error)
	// takeStatus sets the status of to to that of from, or to none if from is nil.
	takeStatus(to, from *store.Object)
	// sameSpec reports whether a and b are equal but for metadata and status.
	sameSpec(a, b *store.Object) bool
	// encode returns the value's JSON with that resourceVersion, and without its managed
	// fields if lean.
	encode(o *store.Object, resourceVersion string, lean bool) ([]byte, error)
	// fields returns what encode encodes. Its members may be o's own, but for the
	// metadata.
	fields(o *store.Object, resourceVersion string) (map[string]any, error)
}

// structLayout is the layout of a struct. Its spec are all fields but metadata
// and status.
type structLayout struct {
	schema *store.Schema
	meta   func(*store.Object) metav1.Object
	status int // index of the field, -1 if there is none
	spec   []int
}

func newStructLayout(schema *store.Schema, meta func(*store.Object) metav1.Object, t reflect.Type) *structLayout {
	l := &structLayout{schema: schema, meta: meta, status: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Type == reflect.TypeFor[metav1.TypeMeta](), f.Type == reflect.TypeFor[metav1.ObjectMeta](), !f.IsExported():
		case name == "status":
			l.status = i
		default:
			l.spec = append(l.spec, i)
		}
	}
	return l
}

func (l *structLayout) decode(body []byte, o *store.Object) (strict []error, err error) {
	return kjson.UnmarshalStrict(body, l.schema.Pointer(o))
}

func (l *structLayout) clone(o *store.Object) *store.Object {
	c := l.schema.Clone(o)
	*c = store.Object{}
	return c
}

func (l *structLayout) deepClone(o *store.Object) (*store.Object, error) {
	text, err := json.Marshal(l.schema.Pointer(o))
	if err != nil {
		return nil, err
	}
	c := l.schema.New()
	_, err = l.decode(text, c)
	return c, err
}

func (l *structLayout) value(o *store.Object) reflect.Value {
	return reflect.ValueOf(l.schema.Pointer(o)).Elem()
}

func (l *structLayout) takeStatus(to, from *store.Object) {
	switch {
	case l.status < 0:
	case from == nil:
		l.value(to).Field(l.status).SetZero()
	default:
		l.value(to).Field(l.status).Set(l.value(from).Field(l.status))
	}
}

func (l *structLayout) sameSpec(a, b *store.Object) bool {
	va, vb := l.value(a), l.value(b)
	return !slices.ContainsFunc(l.spec, func(i int) bool {
		return !equality.Semantic.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface())
	})
}

func (l *structLayout) encode(o *store.Object, resourceVersion string, lean bool) ([]byte, error) {
	c := l.clone(o)
	l.meta(c).SetResourceVersion(resourceVersion)
	if lean {
		l.meta(c).SetManagedFields(nil)
	}
	return json.Marshal(l.schema.Pointer(c))
}

func (l *structLayout) fields(o *store.Object, resourceVersion string) (map[string]any, error) {
	text, err := l.encode(o, resourceVersion, false)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	return fields, kjson.UnmarshalCaseSensitivePreserveInts(text, &fields)
}

// content is what unstructured.Unstructured has: a value that is a map.
type content interface {
	UnstructuredContent() map[string]any
	SetUnstructuredContent(map[string]any)
}

// mapLayout is the layout of a value that is a map.
type mapLayout struct{ schema *store.Schema }

func (l *mapLayout) of(o *store.Object) map[string]any {
	return l.schema.Pointer(o).(content).UnstructuredContent()
}

func (l *mapLayout) set(o *store.Object, fields map[string]any) {
	l.schema.Pointer(o).(content).SetUnstructuredContent(fields)
}

func (l *mapLayout) decode(body []byte, o *store.Object) (strict []error, err error) {
	fields := map[string]any{}
	if strict, err = kjson.UnmarshalStrict(body, &fields); err != nil {
		return nil, err
	}
	if meta, present := fields["metadata"]; present {
		// Metadata of a wrong type would be ignored by the accessors.
		if err := decodeMetadata(meta); err != nil {
			return nil, err
		}
	}
	l.set(o, fields)
	return strict, nil
}

// decodeMetadata returns an error unless meta has the types of metadata.
func decodeMetadata(meta any) error {
	text, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, new(metav1.ObjectMeta))
}

func (l *mapLayout) clone(o *store.Object) *store.Object {
	c := l.schema.New()
	l.set(c, runtime.DeepCopyJSON(l.of(o)))
	return c
}

func (l *mapLayout) deepClone(o *store.Object) (*store.Object, error) { return l.clone(o), nil }

func (l *mapLayout) takeStatus(to, from *store.Object) {
	if from != nil {
		if status, present := l.of(from)["status"]; present {
			l.of(to)["status"] = runtime.DeepCopyJSONValue(status)
			return
		}
	}
	delete(l.of(to), "status")
}

func (l *mapLayout) sameSpec(a, b *store.Object) bool {
	spec := func(o *store.Object) map[string]any {
		fields := maps.Clone(l.of(o))
		for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
			delete(fields, name)
		}
		return fields
	}
	return equality.Semantic.DeepEqual(spec(a), spec(b))
}

func (l *mapLayout) encode(o *store.Object, resourceVersion string, lean bool) ([]byte, error) {
	fields, err := l.fields(o, resourceVersion)
	if err != nil {
		return nil, err
	}
	if lean {
		delete(fields[metadataField].(map[string]any), managedField) // of a clone
	}
	return json.Marshal(fields)
}

func (l *mapLayout) fields(o *store.Object, resourceVersion string) (map[string]any, error) {
	fields := maps.Clone(l.of(o))
	meta, _ := fields["metadata"].(map[string]any)
	if meta = maps.Clone(meta); meta == nil {
		meta = map[string]any{}
	}
	if resourceVersion != "" {
		meta["resourceVersion"] = resourceVersion
	}
	fields["metadata"] = meta
	return fields, nil
}
