package scale

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry/internal/layout"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Functions say where the objects of a kind have what a scale shows. They are the user's and may panic, which the
// methods return as a [*usercode.PanicError].
type Functions struct {
	// Replicas returns the wanted number; ok is false if the object has none.
	Replicas func(*store.Object) (n int32, ok bool)
	// SetReplicas sets it.
	SetReplicas func(*store.Object, int32)
	// Observed returns the present number, and Selector the label selector of the replicas.
	Observed func(*store.Object) int32
	Selector func(*store.Object) string
}

// Get returns the number of replicas of an object; ok is false if it has none.
func (f *Functions) Get(o *store.Object) (n int32, ok bool, err error) {
	err = contained(o, func() { n, ok = f.Replicas(o) })
	return n, ok, err
}

// Set sets the number of replicas of an object, and reports whether the object has it afterwards.
func (f *Functions) Set(o *store.Object, n int32) (set bool, err error) {
	err = contained(o, func() {
		f.SetReplicas(o, n)
		now, ok := f.Replicas(o)
		set = ok && now == n
	})
	return set, err
}

// Layout returns a layout that encodes the objects of another one as their scales.
func (f *Functions) Layout(of layout.Layout, meta func(*store.Object) metav1.Object) layout.Layout {
	return &scaleLayout{of, f, meta}
}

type scaleLayout struct {
	layout.Layout
	by   *Functions
	meta func(*store.Object) metav1.Object
}

func (l *scaleLayout) Encode(o *store.Object, resourceVersion string, _ bool) (text []byte, err error) {
	panicked := contained(o, func() { text, err = json.Marshal(l.by.scaleOf(o, l.meta(o), resourceVersion)) })
	if panicked != nil {
		return nil, panicked
	}
	return text, err
}

// scaleOf returns the scale of an object.
func (f *Functions) scaleOf(o *store.Object, meta metav1.Object, resourceVersion string) *Object {
	s := &Object{ObjectMeta: *Meta(meta)}
	s.SetGroupVersionKind(Kind)
	s.SetResourceVersion(resourceVersion)
	wanted, ok := f.Replicas(o)
	s.Spec.Replicas = wanted
	if !ok {
		s.Spec.Replicas = NoReplicas
	}
	s.Status.Replicas, s.Status.Selector = f.Observed(o), f.Selector(o)
	return s
}

// contained calls the functions by call, and returns a panic of theirs as an error.
func contained(o *store.Object, call func()) error { return usercode.Call("Config.Scale", o.Key, call) }
