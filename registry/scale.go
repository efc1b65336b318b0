package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/scale"
	"github.com/watchmill/watchmill/store"
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
var scaleKind = Kind{Group: scale.Kind.Group, Version: scale.Kind.Version, Kind: scale.Kind.Kind}.withDefaults()

// scaleColumns are the columns of tables of the subresource, besides Name and Age.
var scaleColumns = []ColumnInfo{
	{Name: "Desired", Type: "integer", Format: "int32", Description: "The number of replicas that is wanted."},
	{Name: "Available", Type: "integer", Format: "int32", Description: "The number of replicas that there are."},
}

// functions returns s without its type, nil for none. The caller may change s later.
func (s *Scale[T]) functions() *scale.Functions {
	if s == nil {
		return nil
	}
	of := *s
	return &scale.Functions{
		Replicas:    func(o *store.Object) (int32, bool) { return of.Replicas(valueOf[T](o)) },
		SetReplicas: func(o *store.Object, n int32) { of.SetReplicas(valueOf[T](o), n) },
		Observed: func(o *store.Object) int32 {
			if of.Observed == nil {
				return 0
			}
			return of.Observed(valueOf[T](o))
		},
		Selector: func(o *store.Object) string {
			if of.Selector == nil {
				return ""
			}
			return of.Selector(valueOf[T](o))
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
		kind: kind, schema: f.schema, meta: func(o *store.Object) metav1.Object { return scale.Meta(f.meta(o)) }, typeMeta: f.typeMeta, layout: f.scale.Layout(f.layout, f.meta), columns: scaleColumns,
		cells: []func(*store.Object) any{
			func(o *store.Object) any {
				if n, ok := f.scale.Replicas(o); ok {
					return n
				}
				return nil
			},
			func(o *store.Object) any { return f.scale.Observed(o) },
		},
	}
}

// checkScale refuses an object that has no number of replicas to show.
func (f *form) checkScale(o *store.Object) error {
	_, ok, err := f.scale.Get(o)
	if err != nil {
		return err
	}
	if !ok {
		return &InvalidError{Kind: scaleKind, Name: f.meta(o).GetName(), Errors: field.ErrorList{
			field.Required(scale.ReplicasPath, "the object has no number of replicas"),
		}}
	}
	return nil
}

// decodeScale reads a scale that is to be written.
func (f *form) decodeScale(body []byte, opts *WriteOptions) (*scale.Object, error) {
	if err := checkSent(body); err != nil {
		return nil, err
	}
	s, strict, err := scale.Read(body)
	if err != nil {
		return nil, &BadRequestError{Reason: "the body is not a valid Scale: " + err.Error(), Cause: err}
	}
	if err := checkKind(s.APIVersion, s.Kind, &scaleKind); err != nil {
		return nil, err
	}
	if err := opts.judge(strict); err != nil {
		return nil, err
	}
	if s.Spec.Replicas == scale.NoReplicas {
		return nil, badRequest("the object has no number of replicas: set spec.replicas")
	}
	if s.Spec.Replicas < 0 {
		return nil, &InvalidError{Kind: scaleKind, Name: s.Name, Errors: field.ErrorList{
			field.Invalid(scale.ReplicasPath, s.Spec.Replicas, "must be greater than or equal to 0"),
		}}
	}
	return s, nil
}

// scaled returns a draft of old with the number of replicas of a scale. It has the scale's
// name, uid and resourceVersion, which the update checks like those of any other body.
func (f *form) scaled(old *store.Object, s *scale.Object) (*store.Object, error) {
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
	set, err := f.scale.Set(o, n)
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
		Schema: scale.Schema, Fields: r.fields.Names(), Decoders: r.decoders, Apply: r.applies(), StrategicMerge: r.mergeScale, Deprecated: r.deprecated,
	}
}

func (r *scaleResource) Get(ctx context.Context, key string, opts engine.GetOptions) (Item, error) {
	o, err := r.engine.Get(ctx, key, opts)
	if err == nil {
		err = r.checkScale(o)
	}
	return r.item(o, err)
}
