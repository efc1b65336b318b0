package crd

import "k8s.io/kube-openapi/pkg/validation/spec"

// maxSteps is how many steps the validation of an object may take, some seconds. What is an enum's length times
// that of a list may take hours, in which nothing stops it. The same holds for the alternatives of a schema.
const maxSteps = 200_000_000

// stepsOfSchema is how many steps it takes to validate a value by a schema, besides those of what the schema has.
// The comparison with a value of an enum is one step.
const stepsOfSchema = 25

const tooLong = "it would take too long to validate: the enums, or the alternatives, of its schema are too many for so many values; send fewer"

// steps counts down.
type steps struct{ left int }

// take takes the steps of validating a value by the enum and the alternatives of a schema. Fields and items are
// taken when they are validated.
func (n *steps) take(s *spec.Schema, value any) {
	n.left -= len(s.Enum)
	for _, junctor := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := 0; i < len(junctor) && n.left >= 0; i++ {
			n.takeAll(&junctor[i], value)
		}
	}
	if s.Not != nil {
		n.takeAll(s.Not, value)
	}
}

// takeWhole takes the steps of a value with all that is in it, and reports whether there are enough.
func (n *steps) takeWhole(s *spec.Schema, value any) bool {
	n.take(s, value)
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			if n.left < 0 {
				break
			}
			n.takeWholeField(s, name, field)
		}
	case []any:
		for i := 0; i < len(v) && n.left >= 0 && s.Items != nil && s.Items.Schema != nil; i++ {
			n.takeWhole(s.Items.Schema, v[i])
		}
	}
	return n.left >= 0
}

// takeWholeField is takeWhole for one field. Inside the loop, the copy that schemaOf makes would be allocated for each
// field of every write.
func (n *steps) takeWholeField(s *spec.Schema, name string, field any) {
	n.takeWhole(schemaOf(s, name), field)
}

// takeAll is take for an alternative, which the library validates with all that is in the value.
func (n *steps) takeAll(s *spec.Schema, value any) {
	n.left -= stepsOfSchema
	n.take(s, value)
	switch v := value.(type) {
	case map[string]any:
		n.takeFields(s, v)
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return
		}
		for i := 0; i < len(v) && n.left >= 0; i++ {
			n.takeAll(s.Items.Schema, v[i])
		}
	}
}

// takeFields is takeAll for the fields of a value that the schema describes.
func (n *steps) takeFields(s *spec.Schema, fields map[string]any) {
	if len(s.Properties) == 0 && (s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil) {
		return
	}
	for name, field := range fields {
		if n.left < 0 {
			return
		}
		n.takeField(s, name, field)
	}
}

// takeField is takeAll for one field; see takeWholeField.
func (n *steps) takeField(s *spec.Schema, name string, field any) {
	n.takeAll(schemaOf(s, name), field)
}
