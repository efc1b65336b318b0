package crd

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/watchmill/watchmill/internal/excerpt"
	"github.com/watchmill/watchmill/registry/internal/fielderrors"
)

// check validates a value, until more than fielderrors.Most errors are found, since the validation
// library compares each with those before. If it replaces another one, then as in Kubernetes
// unchanged parts may be wrong: otherwise an object that is older than a rule of its schema could
// neither be changed nor lose its finalizers.
//
// A field of an object replaces the one of its name, an item of a list that is a map the one with its keys.
// Other items replace none, but the whole list replaces the old one. As in Kubernetes, fields and items
// without a schema, and what contains them, always count as changed.
type check struct {
	schema   *spec.Schema
	root     any // the schema that the validation library passes on
	path     string
	of       *course // that of the whole object
	replaces bool
	old      any // that it replaces
}

// Validate returns the errors of the value, except those of parts that are unchanged.
func (c *check) Validate(value any) *validate.Result {
	if c.of.found > fielderrors.Most || c.of.steps.left < 0 || c.replaces && c.isAsItWas(value) {
		return &validate.Result{}
	}
	if c.of.steps.take(c.schema, value); c.of.steps.left < 0 {
		return &validate.Result{}
	}
	before := c.of.found
	result := validate.NewSchemaValidator(c.schema, c.root, c.path, strfmt.Default, c.below(value)).Validate(value)
	c.of.found = max(c.of.found, before+len(result.Errors))
	return result
}

// errors validates a whole object, or its status, and returns what is wrong, by field.
func (c *check) errors(value any) field.ErrorList {
	c.of = &course{steps: steps{maxSteps}}
	if all := (&steps{maxSteps}); c.replaces || all.takeWhole(c.schema, value) { // else it does not begin
		wrong := fieldErrors(c.Validate(value))
		if c.of.steps.left >= 0 {
			return wrong
		}
		// Whatever has been found by then is left out, since an alternative may have hidden it.
	}
	return field.ErrorList{field.Forbidden(nil, tooLong)}
}

// course is the course of the validation of a whole object.
type course struct {
	// found counts the errors. The library checks what is below alternatives, whose errors may not be ones of
	// the object, by itself.
	found int
	steps steps
}

// isAsItWas reports whether the value equals the one that it replaces. The items of a list that is a map
// may have another order.
func (c *check) isAsItWas(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		old, isObject := c.old.(map[string]any)
		return isObject && len(v) == len(old) && c.hasFieldsOf(old, v)
	case []any:
		old, isList := c.old.([]any)
		return isList && len(v) == len(old) && c.hasItemsOfOld(v)
	}
	return reflect.DeepEqual(value, c.old)
}

// hasFieldsOf reports whether old has each field of an object, as it is there.
func (c *check) hasFieldsOf(old, object map[string]any) bool {
	for name, field := range object {
		before, found := old[name]
		if !found || !(&check{schema: schemaOf(c.schema, name), old: before}).isAsItWas(field) {
			return false
		}
	}
	return true
}

// hasItemsOfOld reports whether the list that is replaced has each item of this one.
func (c *check) hasItemsOfOld(list []any) bool {
	old := c.oldItems()
	if len(old.byKey) == 0 || c.schema.Items == nil {
		return reflect.DeepEqual(list, c.old)
	}
	for i, item := range list {
		before, found := old.replacedBy(list, i)
		if !found || !(&check{schema: c.schema.Items.Schema, old: before}).isAsItWas(item) {
			return false
		}
	}
	return true
}

// schemaOf returns the schema of a field, an empty one if the field is not described.
func schemaOf(s *spec.Schema, name string) *spec.Schema {
	if of, found := s.Properties[name]; found {
		return &of
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return s.AdditionalProperties.Schema
	}
	return &spec.Schema{}
}

// maxTold is how many bytes of the path of a value errors show, and the values below have in their
// paths. The path is put together for each value, and a name in it may be as large as a body.
const maxTold = 2 << 10

// below has the parts of a value checked in the same way.
func (c *check) below(value any) validate.Option {
	var oldItems *mapItems
	return func(o *validate.SchemaValidatorOptions) {
		o.NewValidatorForField = func(name string, by *spec.Schema, root any, path string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
			fields, _ := c.old.(map[string]any)
			old, replaces := fields[name]
			return &check{by, root, excerpt.Of(path, maxTold), c.of, replaces, old}
		}
		o.NewValidatorForIndex = func(i int, by *spec.Schema, root any, path string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
			if oldItems == nil {
				oldItems = c.oldItems()
			}
			old, replaces := oldItems.replacedBy(value, i)
			return &check{by, root, excerpt.Of(path, maxTold), c.of, replaces, old}
		}
	}
}

// mapItems are the items of a list that is a map.
type mapItems struct {
	keys  schema
	byKey map[string]any // the first of those with the same keys
}

// oldItems returns the items of the old list, none if it is not a map.
func (c *check) oldItems() *mapItems {
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
func (c *check) SetPath(path string) { c.path = path }

// Applies implements [validate.ValueValidator].
func (c *check) Applies(any, reflect.Kind) bool { return true }
