package layout

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// structLayout is the layout of a struct. Its spec are all fields but metadata
// and status. Fields of embedded structs are the struct's own, as in JSON.
type structLayout struct {
	schema *store.Schema
	meta   func(*store.Object) metav1.Object
	kind   schema.GroupVersionKind
	status []int // index of the field, nil if there is none
	spec   [][]int
	same   conversion.Equalities
}

func newStructLayout(of *store.Schema, meta func(*store.Object) metav1.Object, t reflect.Type, kind schema.GroupVersionKind) *structLayout {
	l := &structLayout{schema: of, meta: meta, kind: kind, same: Equality(t)}
	l.addFields(t, nil)
	return l
}

// addFields adds the fields of a struct that is embedded at that index.
func (l *structLayout) addFields(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(slices.Clone(at), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == reflect.TypeFor[metav1.TypeMeta](), f.Type == reflect.TypeFor[metav1.ObjectMeta]() && f.Anonymous, name == "metadata":
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			l.addFields(f.Type, index)
		case !f.IsExported():
		case name == "status" && (l.status == nil || len(index) < len(l.status)): // the outer one hides the inner one
			l.status = index
		default:
			l.spec = append(l.spec, index)
		}
	}
}

func (l *structLayout) Decode(body []byte, o *store.Object) (strict []error, err error) {
	panicked := usercode.Call("UnmarshalJSON", "", func() { strict, err = kjson.UnmarshalStrict(body, l.schema.Pointer(o)) })
	if panicked != nil {
		return nil, panicked
	}
	return strict, err
}

func (l *structLayout) Clone(o *store.Object) *store.Object {
	c := l.schema.Clone(o)
	*c = store.Object{}
	return c
}

func (l *structLayout) Draft(o *store.Object) *store.Object {
	c := l.Clone(o)
	m := l.meta(c)
	m.SetLabels(maps.Clone(m.GetLabels()))
	m.SetAnnotations(maps.Clone(m.GetAnnotations()))
	m.SetFinalizers(slices.Clone(m.GetFinalizers()))
	m.SetOwnerReferences(slices.Clone(m.GetOwnerReferences()))
	m.SetManagedFields(slices.Clone(m.GetManagedFields()))
	return c
}

func (l *structLayout) DeepClone(o *store.Object) (*store.Object, error) {
	c := l.Clone(o)
	var nested error
	if panicked := usercode.Call("DeepCopyObject", o.Key, func() { nested = deepCopy(l.schema.Pointer(c)) }); panicked != nil {
		return nil, panicked
	}
	if nested != nil {
		return l.reread(o) // a type's own MarshalJSON may leave out the way back
	}
	return c, nil
}

// reread returns a new object of the JSON of o.
func (l *structLayout) reread(o *store.Object) (*store.Object, error) {
	text, err := json.Marshal(l.schema.Pointer(o))
	if err != nil {
		return nil, err
	}
	c := l.schema.New()
	_, err = l.Decode(text, c)
	return c, err
}

func (l *structLayout) value(o *store.Object) reflect.Value {
	return reflect.ValueOf(l.schema.Pointer(o)).Elem()
}

func (l *structLayout) TakeStatus(to, from *store.Object) {
	switch {
	case l.status == nil:
	case from == nil:
		l.value(to).FieldByIndex(l.status).SetZero()
	default:
		l.value(to).FieldByIndex(l.status).Set(l.value(from).FieldByIndex(l.status))
	}
}

func (l *structLayout) SameSpec(a, b *store.Object) bool {
	va, vb := l.value(a), l.value(b)
	return !slices.ContainsFunc(l.spec, func(i []int) bool {
		return !l.same.DeepEqual(va.FieldByIndex(i).Interface(), vb.FieldByIndex(i).Interface())
	})
}

func (l *structLayout) SameStatus(a, b *store.Object) bool {
	return l.status == nil || l.same.DeepEqual(l.value(a).FieldByIndex(l.status).Interface(), l.value(b).FieldByIndex(l.status).Interface())
}

func (l *structLayout) Encode(o *store.Object, resourceVersion string, lean bool) (text []byte, err error) {
	c := l.Clone(o)
	l.meta(c).SetResourceVersion(resourceVersion)
	l.schema.Pointer(c).(interface{ GetObjectKind() schema.ObjectKind }).GetObjectKind().SetGroupVersionKind(l.kind)
	if lean {
		l.meta(c).SetManagedFields(nil)
	}
	panicked := usercode.Call("MarshalJSON", o.Key, func() { text, err = json.Marshal(l.schema.Pointer(c)) })
	if panicked != nil {
		return nil, panicked
	}
	return text, err
}

func (l *structLayout) Fields(o *store.Object, resourceVersion string) (map[string]any, error) {
	text, err := l.Encode(o, resourceVersion, false)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	return fields, kjson.UnmarshalCaseSensitivePreserveInts(text, &fields)
}
