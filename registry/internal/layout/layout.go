package layout

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/store"
)

// Layout knows where a value keeps its status and how the value becomes JSON. There are
// two: for structs, and for maps, whose fields are known only at run time.
type Layout interface {
	// Decode fills o's value from body, and returns unknown and repeated fields.
	Decode(body []byte, o *store.Object) (strict []error, err error)
	// Clone returns a new object with o's value. Its metadata and its status can
	// be set without changing o.
	Clone(o *store.Object) *store.Object
	// Draft is Clone, but the maps and lists of the new object's metadata are its own, so
	// that they can be changed, too.
	Draft(o *store.Object) *store.Object
	// DeepClone returns a new object with o's value, which shares nothing with o except the contents of
	// unexported fields, and of fields that JSON leaves out. The error is a panic in the kind's own
	// DeepCopyObject, or says that the value contains itself, which its JSON would, too.
	DeepClone(o *store.Object) (*store.Object, error)
	// TakeStatus sets the status of to to that of from, or to none if from is nil.
	TakeStatus(to, from *store.Object)
	// SameSpec reports whether a and b are equal apart from metadata and status.
	SameSpec(a, b *store.Object) bool
	// SameStatus reports whether a and b have the same status.
	SameStatus(a, b *store.Object) bool
	// Encode returns the value's JSON with that resourceVersion, and without its managed
	// fields if lean.
	Encode(o *store.Object, resourceVersion string, lean bool) ([]byte, error)
	// Fields returns what Encode encodes. Its members may be o's own, except the
	// metadata.
	Fields(o *store.Object, resourceVersion string) (map[string]any, error)
}

// Of returns the layout of the values of the schema of, which are of type t. meta returns
// the metadata of an object's value. JSON has the apiVersion and the kind of kind, whatever
// they were when the value was stored.
func Of(of *store.Schema, meta func(*store.Object) metav1.Object, t reflect.Type, kind schema.GroupVersionKind) Layout {
	if IsMap(t) {
		return &mapLayout{of, kind}
	}
	return newStructLayout(of, meta, t, kind)
}

// IsMap reports whether a value of type t is a map of its fields.
func IsMap(t reflect.Type) bool { return reflect.PointerTo(t).Implements(reflect.TypeFor[content]()) }

// HasStatus reports whether values of type t have a status that their layout knows. It does not know one
// of a struct that is embedded by a pointer.
func HasStatus(t reflect.Type) bool {
	if IsMap(t) {
		return true
	}
	l := &structLayout{}
	l.addFields(t, nil)
	return l.status != nil
}

// content is what unstructured.Unstructured has: a value that is a map.
type content interface {
	UnstructuredContent() map[string]any
	SetUnstructuredContent(map[string]any)
}
