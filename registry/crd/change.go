package crd

import (
	"reflect"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// change validates a value that replaces another. As in Kubernetes, what has not changed may be
// wrong: an object that is older than a rule of its schema could not be changed otherwise, nor
// lose its finalizers.
//
// A field of an object replaces the one of its name, an item of a list that is a map the one with
// its keys. Other items replace none, but the whole list replaces the old one.
type change struct {
	schema *spec.Schema
	root   any // the schema that the validation library passes on
	path   string
	old    any
}

// Validate returns the errors of the value, but for those of parts that are as they were.
func (c *change) Validate(value any) *validate.Result {
	result := validate.NewSchemaValidator(c.schema, c.root, c.path, strfmt.Default, func(o *validate.SchemaValidatorOptions) {
		o.NewValidatorForField = func(name string, of *spec.Schema, root any, path string, formats strfmt.Registry, options ...validate.Option) validate.ValueValidator {
			fields, _ := c.old.(map[string]any)
			if old, found := fields[name]; found {
				return &change{of, root, path, old}
			}
			return validate.NewSchemaValidator(of, root, path, formats, options...)
		}
		o.NewValidatorForIndex = func(i int, of *spec.Schema, root any, path string, formats strfmt.Registry, options ...validate.Option) validate.ValueValidator {
			if old, found := c.oldItem(value, i); found {
				return &change{of, root, path, old}
			}
			return validate.NewSchemaValidator(of, root, path, formats, options...)
		}
	}).Validate(value)
	if !result.IsValid() && reflect.DeepEqual(value, c.old) {
		return &validate.Result{}
	}
	return result
}

// oldItem returns the item of the old list that item i of a list replaces, if the list is a map.
func (c *change) oldItem(list any, i int) (old any, found bool) {
	names, _ := c.schema.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	items, _ := list.([]any)
	before, _ := c.old.([]any)
	if len(names) == 0 || i >= len(items) {
		return nil, false
	}
	keys := &schema{ListKeys: names}
	for _, item := range before {
		if reflect.DeepEqual(keys.keysOf(item), keys.keysOf(items[i])) {
			return item, true
		}
	}
	return nil, false
}

// SetPath implements [validate.ValueValidator].
func (c *change) SetPath(path string) { c.path = path }

// Applies implements [validate.ValueValidator].
func (c *change) Applies(any, reflect.Kind) bool { return true }
