package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// oneVersion makes, defaults and converts the objects of a kind with one version: there
// is nothing to convert, and defaults are the registry's.
type oneVersion struct{ kind schema.GroupVersionKind }

var (
	_ runtime.ObjectConvertor = oneVersion{}
	_ runtime.ObjectDefaulter = oneVersion{}
	_ runtime.ObjectCreater   = oneVersion{}
)

// Default does nothing.
func (oneVersion) Default(runtime.Object) {}

// New returns an empty object.
func (v oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if kind != v.kind {
		return nil, v.unknown(kind)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o, nil
}

// ConvertToVersion returns in. Another version is not registered: fields that are owned
// by it have no owner any more.
func (v oneVersion) ConvertToVersion(in runtime.Object, version runtime.GroupVersioner) (runtime.Object, error) {
	if kind, ok := version.KindForGroupVersionKinds([]schema.GroupVersionKind{v.kind}); !ok || kind != v.kind {
		return nil, runtime.NewNotRegisteredErrForTarget(v.kind.String(), nil, version)
	}
	return in, nil
}

// Convert fails; the field manager does not call it.
func (v oneVersion) Convert(in, _, _ any) error {
	return fmt.Errorf("%T is not converted: %s is the only version", in, v.kind.GroupVersion())
}

// ConvertFieldLabel returns the field as it is.
func (v oneVersion) ConvertFieldLabel(kind schema.GroupVersionKind, label, value string) (string, string, error) {
	if kind != v.kind {
		return "", "", v.unknown(kind)
	}
	return label, value, nil
}

func (v oneVersion) unknown(kind schema.GroupVersionKind) error {
	return runtime.NewNotRegisteredErrForKind(v.kind.String(), kind)
}
