package registry

import (
	"context"
	"encoding/json"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/layout"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Scale gives a kind a scale subresource: its number of replicas in the form that all kinds
// have in common, which kubectl scale and autoscalers read and write. A write of it changes
// that number alone. Replicas and SetReplicas are required.
type Scale[T any] struct {
	// Replicas returns the wanted number; ok is false if the object has none.
	Replicas func(obj *T) (n int32, ok bool)
	// SetReplicas sets it, to 0 or more. It may change obj, which shares nothing.
	SetReplicas func(obj *T, n int32)
	// Observed returns the present number. Nil means 0.
	Observed func(obj *T) int32
	// Selector returns the label selector of the replicas, as text. Nil means none.
	Selector func(obj *T) string
}

// scaleSubresource is the name of the subresource.
const scaleSubresource = "scale"

// scaleKind is the kind of the subresource's objects.
var scaleKind = Kind{Group: "autoscaling", Version: "v1", Kind: "Scale"}.withDefaults()

// replicasPath is where a scale has the number that is wanted.
var replicasPath = field.NewPath("spec", "replicas")

// noReplicas stands for a number that is missing, in a scale to be patched: the patch sets
// it, or the result is refused.
const noReplicas = math.MinInt32

// scaleObject is an object of the subresource, as autoscaling/v1 has it.
type scaleObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas int32  `json:"replicas"`
		Selector string `json:"selector,omitempty"`
	} `json:"status"`
}

// scaleSchema is the OpenAPI schema of the subresource's objects.
var scaleSchema = json.RawMessage(`{"type":"object","description":"The number of replicas of an object.","properties":{` +
	`"spec":{"type":"object","description":"What is wanted.","properties":{` +
	`"replicas":{"type":"integer","format":"int32","description":"The number of replicas that is wanted."}}},` +
	`"status":{"type":"object","description":"What there is.","properties":{` +
	`"replicas":{"type":"integer","format":"int32","description":"The number of replicas that there are."},` +
	`"selector":{"type":"string","description":"The label selector of the replicas."}}}}}`)

// scaleColumns are the columns of tables of the subresource, besides Name and Age.
var scaleColumns = []ColumnInfo{
	{Name: "Desired", Type: "integer", Format: "int32", Description: "The number of replicas that is wanted."},
	{Name: "Available", Type: "integer", Format: "int32", Description: "The number of replicas that there are."},
}

// scaling is a [Scale] without its type.
type scaling struct {
	replicas    func(*store.Object) (int32, bool)
	setReplicas func(*store.Object, int32)
	observed    func(*store.Object) int32
	selector    func(*store.Object) string
}

// scalingOf returns the scaling that given describes, nil for none. The caller may change given
// later.
func scalingOf[T any](given *Scale[T]) *scaling {
	if given == nil {
		return nil
	}
	s := *given
	return &scaling{
		replicas:    func(o *store.Object) (int32, bool) { return s.Replicas(valueOf[T](o)) },
		setReplicas: func(o *store.Object, n int32) { s.SetReplicas(valueOf[T](o), n) },
		observed: func(o *store.Object) int32 {
			if s.Observed == nil {
				return 0
			}
			return s.Observed(valueOf[T](o))
		},
		selector: func(o *store.Object) string {
			if s.Selector == nil {
				return ""
			}
			return s.Selector(valueOf[T](o))
		},
	}
}

// validate returns an [*engine.ConfigError] if a function is missing.
func (s *Scale[T]) validate() error {
	if s != nil && (s.Replicas == nil || s.SetReplicas == nil) {
		return &engine.ConfigError{Field: "Scale", Problem: "has no function for Replicas or SetReplicas; give both"}
	}
	return nil
}

// scaleForm returns the form in which the subresource shows the kind's objects.
func (f *form) scaleForm() *form {
	kind := scaleKind
	kind.ClusterScoped = f.kind.ClusterScoped
	return &form{
		kind: kind, schema: f.schema, meta: func(o *store.Object) metav1.Object { return f.scaleMeta(o) }, typeMeta: f.typeMeta, layout: &scaleLayout{f.layout, f}, columns: scaleColumns,
		cells: []func(*store.Object) any{
			func(o *store.Object) any {
				if n, ok := f.scale.replicas(o); ok {
					return n
				}
				return nil
			},
			func(o *store.Object) any { return f.scale.observed(o) },
		},
	}
}

// scaleLayout encodes objects as their scale.
type scaleLayout struct {
	layout.Layout
	of *form
}

func (l *scaleLayout) Encode(o *store.Object, resourceVersion string, _ bool) (text []byte, err error) {
	panicked := usercode.Call("Config.Scale", o.Key, func() { text, err = json.Marshal(l.of.scaleOf(o, resourceVersion)) })
	if panicked != nil {
		return nil, panicked
	}
	return text, err
}

// scaleOf returns the scale of an object.
func (f *form) scaleOf(o *store.Object, resourceVersion string) *scaleObject {
	s := &scaleObject{ObjectMeta: *f.scaleMeta(o)}
	s.SetGroupVersionKind(scaleKind.GroupVersionKind())
	s.SetResourceVersion(resourceVersion)
	wanted, ok := f.scale.replicas(o)
	s.Spec.Replicas = wanted
	if !ok {
		s.Spec.Replicas = noReplicas
	}
	s.Status.Replicas, s.Status.Selector = f.scale.observed(o), f.scale.selector(o)
	return s
}

// scaleMeta returns what the scale of an object has of its metadata, in any form. The rest is not for those
// that may read the scale alone.
func (f *form) scaleMeta(o *store.Object) *metav1.ObjectMeta {
	m := f.meta(o)
	return &metav1.ObjectMeta{Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUID(), CreationTimestamp: m.GetCreationTimestamp()}
}

// checkScale refuses an object that has no number of replicas to show.
func (f *form) checkScale(o *store.Object) error {
	ok := false
	if err := usercode.Call("Config.Scale", o.Key, func() { _, ok = f.scale.replicas(o) }); err != nil {
		return err
	}
	if !ok {
		return &InvalidError{Kind: scaleKind, Name: f.meta(o).GetName(), Errors: field.ErrorList{
			field.Required(replicasPath, "the object has no number of replicas"),
		}}
	}
	return nil
}

// decodeScale reads a scale that is to be written.
func (f *form) decodeScale(body []byte, opts *WriteOptions) (*scaleObject, error) {
	if err := checkSent(body); err != nil {
		return nil, err
	}
	s := &scaleObject{}
	strict, err := kjson.UnmarshalStrict(body, s)
	if err != nil {
		return nil, &BadRequestError{Reason: "the body is not a valid Scale: " + err.Error(), Cause: err}
	}
	if err := checkKind(s.APIVersion, s.Kind, &scaleKind); err != nil {
		return nil, err
	}
	if err := opts.judge(strict); err != nil {
		return nil, err
	}
	if s.Spec.Replicas == noReplicas {
		return nil, badRequest("the object has no number of replicas: set spec.replicas")
	}
	if s.Spec.Replicas < 0 {
		return nil, &InvalidError{Kind: scaleKind, Name: s.Name, Errors: field.ErrorList{
			field.Invalid(replicasPath, s.Spec.Replicas, "must be greater than or equal to 0"),
		}}
	}
	return s, nil
}

// scaled returns a draft of old with the number of replicas of a scale. It has the scale's
// name, uid and resourceVersion, which the update checks like those of any other body.
func (f *form) scaled(old *store.Object, s *scaleObject) (*store.Object, error) {
	draft, err := f.layout.DeepClone(old)
	if err != nil {
		return nil, err
	}
	if err := f.setReplicas(draft, s.Spec.Replicas); err != nil {
		return nil, err
	}
	f.setTypeMeta(draft)
	m := f.meta(draft)
	m.SetName(s.Name)
	m.SetNamespace(s.Namespace)
	m.SetUID(s.UID)
	m.SetResourceVersion(s.ResourceVersion)
	return draft, nil
}

// setReplicas sets the number of replicas of an object.
func (f *form) setReplicas(o *store.Object, n int32) error {
	set := false
	err := usercode.Call("Config.Scale", o.Key, func() {
		f.scale.setReplicas(o, n)
		now, ok := f.scale.replicas(o)
		set = ok && now == n
	})
	if err == nil && !set {
		err = badRequest("the number of replicas cannot be set: another value is in its place, or around it")
	}
	return err
}

// decodeScaleAnswer returns what live has become by the scale that a server has answered.
func (f *form) decodeScaleAnswer(answer []byte, live *store.Object) (*store.Object, error) {
	s, err := f.decodeScale(answer, &WriteOptions{Validation: IgnoreUnknown})
	if err != nil {
		return nil, err
	}
	o, err := f.layout.DeepClone(live)
	if err != nil {
		return nil, err
	}
	o.Key = live.Key
	if o.Revision, err = answeredRevision(s.ResourceVersion, live.Revision); err != nil {
		return nil, err
	}
	return o, f.setReplicas(o, s.Spec.Replicas)
}

// scaleResource is the scale subresource of a store as a [Resource].
type scaleResource struct{ resource }

func (r *scaleResource) Info() *Info {
	return &Info{
		Kind: r.kind, Subresource: scaleSubresource, Object: scaleKind, Verbs: r.verbs(scaleSubresource), Columns: scaleColumns,
		Schema: scaleSchema, Fields: r.fields.Names(), Decoders: r.decoders, Apply: r.applies(), StrategicMerge: r.mergeScale, Deprecated: r.deprecated,
	}
}

func (r *scaleResource) Get(ctx context.Context, key string, opts engine.GetOptions) (Item, error) {
	o, err := r.engine.Get(ctx, key, opts)
	if err == nil {
		err = r.checkScale(o)
	}
	return r.item(o, err)
}
