package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/watchmill/watchmill/registry"
)

// versions are the types of a kind's objects in the version that is served and in others.
type versions struct {
	kind   schema.GroupVersionKind
	served managedfields.TypeConverter
	// others allow fields that their schemas do not have, so that an object loses nothing on its way there
	// and back.
	others map[schema.GroupVersion]managedfields.TypeConverter
	// convert returns an object in another version; nil if that differs in its schema alone.
	convert Convert
}

var (
	_ managedfields.TypeConverter = versions{}
	_ runtime.ObjectConvertor     = versions{}
	_ runtime.ObjectDefaulter     = versions{}
	_ runtime.ObjectCreater       = versions{}
)

// addOthers adds the other versions of all, which is nil if there are none, and returns the schemas by which lists may
// merge in these.
func (v *versions) addOthers(kind registry.Kind, all *openTypes) (others []*spec.Schema) {
	v.others = map[schema.GroupVersion]managedfields.TypeConverter{}
	if all == nil {
		return nil
	}
	if v.convert = all.convert; v.convert != nil {
		others = append(others, anyList()) // it may have another name there
	}
	for name := range all.schemas {
		if all.oneGroup {
			name.Group = kind.Group
		}
		if name == v.kind.GroupVersion() {
			continue
		}
		kind.Group, kind.Version = name.Group, name.Version
		of := all.of(kind)
		if of.root != nil {
			others = append(others, of.root)
		}
		v.others[name] = of.types
	}
	return others
}

// openTypes are the types of the versions of a kind as others need them. Each is made once for all of them: a
// definition with many versions would otherwise take memory by the square of their number.
type openTypes struct {
	// schemas are by group and version, or by version alone if all are of one group, which the kind has.
	schemas  map[schema.GroupVersion]json.RawMessage
	oneGroup bool
	convert  Convert

	mu    sync.Mutex
	known map[schema.GroupVersionKind]openType
}

// openType are the types of a version, and its schema, nil if that cannot be read.
type openType struct {
	types managedfields.TypeConverter
	root  *spec.Schema
}

// of returns the types of a version. If its schema cannot be used, they are those that its objects seem to have.
func (o *openTypes) of(kind registry.Kind) openType {
	o.mu.Lock()
	defer o.mu.Unlock()
	made, known := o.known[kind.GroupVersionKind()]
	if known {
		return made
	}
	made.types = managedfields.NewDeducedTypeConverter()
	if root, err := completed(o.schema(kind)); err == nil {
		made.root = root
		if types, err := typesOf(kind, root, true); err == nil {
			made.types = types
		}
	}
	o.known[kind.GroupVersionKind()] = made
	return made
}

// schema returns the schema of a version.
func (o *openTypes) schema(of registry.Kind) json.RawMessage {
	name := of.GroupVersionKind().GroupVersion()
	if o.oneGroup {
		name.Group = ""
	}
	return o.schemas[name]
}

// ObjectToTyped returns an object with the types of its version.
func (v versions) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return v.typesOf(o.GetObjectKind().GroupVersionKind()).ObjectToTyped(o, opts...)
}

// TypedToObject returns the object, which has its version in it.
func (v versions) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return v.served.TypedToObject(value)
}

// typesOf returns the types of a version. For an unknown one it returns those of the version that
// is served, which refuse it.
func (v versions) typesOf(kind schema.GroupVersionKind) managedfields.TypeConverter {
	if types := v.others[kind.GroupVersion()]; types != nil && kind.Kind == v.kind.Kind {
		return types
	}
	return v.served
}

// Default does nothing: defaults are the registry's.
func (versions) Default(runtime.Object) {}

// New returns an empty object.
func (v versions) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if kind != v.kind {
		return nil, v.unknown(kind)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o, nil
}

// ConvertToVersion returns in as another version has it. A version that the kind does not have, or whose
// schema the object does not fit, is not registered: fields that are owned by it have no owner any more.
func (v versions) ConvertToVersion(in runtime.Object, version runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	to, err := v.target(version)
	if err != nil || to == from {
		return in, err
	}
	o, isMap := in.(*unstructured.Unstructured)
	if !isMap {
		return nil, fmt.Errorf("%T is not converted to %s", in, to.GroupVersion())
	}
	converted, err := v.converted(o.Object, to)
	if err == nil {
		_, err = v.ObjectToTyped(converted)
	}
	if err != nil {
		return nil, runtime.NewNotRegisteredErrForTarget(from.String(), nil, version)
	}
	return converted, nil
}

// converted returns an object as another version has it, or the error of [Convert].
func (v versions) converted(fields map[string]any, to schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	fields = maps.Clone(fields)
	if v.convert != nil {
		var err error
		if fields, err = v.convert(fields, to.GroupVersion()); err != nil {
			return nil, err
		}
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(to)
	return o, nil
}

// target returns the kind in the version that is asked for.
func (v versions) target(version runtime.GroupVersioner) (schema.GroupVersionKind, error) {
	known := []schema.GroupVersionKind{v.kind}
	for name := range v.others {
		known = append(known, name.WithKind(v.kind.Kind))
	}
	for _, kind := range known {
		if to, ok := version.KindForGroupVersionKinds([]schema.GroupVersionKind{kind}); ok && to == kind {
			return to, nil
		}
	}
	return schema.GroupVersionKind{}, runtime.NewNotRegisteredErrForTarget(v.kind.String(), nil, version)
}

// Convert fails; the field manager does not call it.
func (v versions) Convert(in, _, _ any) error {
	return fmt.Errorf("%T is not converted; use ConvertToVersion for objects of %s", in, v.kind.GroupKind())
}

// ConvertFieldLabel returns the field as it is.
func (v versions) ConvertFieldLabel(kind schema.GroupVersionKind, label, value string) (string, string, error) {
	if kind != v.kind {
		return "", "", v.unknown(kind)
	}
	return label, value, nil
}

func (v versions) unknown(kind schema.GroupVersionKind) error {
	return runtime.NewNotRegisteredErrForKind(v.kind.String(), kind)
}
