package crd

import (
	"encoding/json"
	"reflect"
	"sync"

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
	oldItems := sync.OnceValue(c.oldItems)
	result := validate.NewSchemaValidator(c.schema, c.root, c.path, strfmt.Default, func(o *validate.SchemaValidatorOptions) {
		o.NewValidatorForField = func(name string, of *spec.Schema, root any, path string, formats strfmt.Registry, options ...validate.Option) validate.ValueValidator {
			fields, _ := c.old.(map[string]any)
			if old, found := fields[name]; found {
				return &change{of, root, path, old}
			}
			return validate.NewSchemaValidator(of, root, path, formats, options...)
		}
		o.NewValidatorForIndex = func(i int, of *spec.Schema, root any, path string, formats strfmt.Registry, options ...validate.Option) validate.ValueValidator {
			if old, found := oldItems().replacedBy(value, i); found {
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

// mapItems are the items of a list that is a map.
type mapItems struct {
	keys  schema
	byKey map[string]any // the first of those with the same keys
}

// oldItems returns the items of the old list, none if it is no map.
func (c *change) oldItems() *mapItems {
	names, _ := c.schema.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	items, _ := c.old.([]any)
	m := &mapItems{schema{ListKeys: names}, map[string]any{}}
	if len(names) == 0 {
		return m
	}
	for _, item := range items {
		key := m.keyOf(item)
		if _, found := m.byKey[key]; !found {
			m.byKey[key] = item
		}
	}
	return m
}

// keyOf returns the keys of an item as one text.
func (m *mapItems) keyOf(item any) string {
	text, _ := json.Marshal(m.keys.keysOf(item)) // cannot fail: it was JSON
	return string(text)
}

// replacedBy returns the item that item i of a list replaces.
func (m *mapItems) replacedBy(list any, i int) (old any, found bool) {
	items, _ := list.([]any)
	if len(m.byKey) == 0 || i >= len(items) {
		return nil, false
	}
	old, found = m.byKey[m.keyOf(items[i])]
	return old, found
}

// SetPath implements [validate.ValueValidator].
func (c *change) SetPath(path string) { c.path = path }

// Applies implements [validate.ValueValidator].
func (c *change) Applies(any, reflect.Kind) bool { return true }
