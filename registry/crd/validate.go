package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// validator validates objects by a schema.
type validator struct {
	schema *spec.Schema
	// ignored are the formats that the schema has had, and that values are not checked by.
	ignored []string
}

// newValidator reads the schema, whose other part is rest, and refuses defaults that it
// does not allow. As in Kubernetes, those are checked with the formats that it does not know.
func newValidator(text []byte, rest *schema) (*validator, error) {
	s := &spec.Schema{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	eachSchema(s, eitherType)
	if err := checkPatterns(s); err != nil {
		return nil, err
	}
	if err := rest.checkDefaults(s, nil); err != nil {
		return nil, err
	}
	return &validator{s, dropFormats(s)}, nil
}

// maxPatterns is how many different patterns a schema may have. The validation library keeps each that it has compiled
// for ever, and copies all of them for each new one.
const maxPatterns = 1000

// checkPatterns refuses a schema with too many patterns.
func checkPatterns(s *spec.Schema) error {
	patterns := map[string]bool{}
	eachSchema(s, func(s *spec.Schema) { patterns[s.Pattern] = true })
	delete(patterns, "")
	if len(patterns) > maxPatterns {
		return fmt.Errorf("it has %d different patterns: give at most %d", len(patterns), maxPatterns)
	}
	return nil
}

// eitherType gives a value that may be an integer or a string these two types, since
// OpenAPI has no word for that.
func eitherType(s *spec.Schema) {
	if either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); either {
		s.Type = spec.StringOrArray{"integer", "string"}
	}
}

// validate returns what is wrong with a value, by field, by the rules that OpenAPI has.
func (v *validator) validate(value any) field.ErrorList {
	return (&check{schema: v.schema}).errors(value)
}

// validateObject is validate of an object. If it replaces another, errors of parts that are
// unchanged do not count.
func (v *validator) validateObject(o, old *unstructured.Unstructured) field.ErrorList {
	wrong := v.validate(o.Object)
	if len(wrong) == 0 || old == nil {
		return wrong
	}
	return (&check{schema: v.schema, replaces: true, old: old.Object}).errors(o.Object)
}

// validateStatus is validateObject of the status alone.
func (v *validator) validateStatus(o, old *unstructured.Unstructured) field.ErrorList {
	status, found := o.Object["status"]
	of, known := v.schema.Properties["status"]
	if !found || !known {
		return nil
	}
	before, replaces := old.Object["status"]
	return (&check{schema: &of, path: "status", replaces: replaces, old: before}).errors(status)
}

// validateSchema returns what is wrong with an object by all of its schema but the rules in CEL. As
// in Kubernetes, a write of the status is refused for what is wrong with that alone.
func (d *Definition) validateSchema(o, old *unstructured.Unstructured) (wrong field.ErrorList) {
	ofStatus := d.changesStatus(o, old)
	if ofStatus {
		wrong = d.validator.validateStatus(o, old)
	} else {
		wrong = d.validator.validateObject(o, old)
	}
	wrong = append(wrong, d.scaled.check(o, ofStatus)...)
	return append(wrong, d.schema.checkValues(o, old, ofStatus)...)
}

// changesStatus reports whether an update changes the status alone, as only a write of that
// subresource does.
func (d *Definition) changesStatus(o, old *unstructured.Unstructured) bool {
	if !d.Kind.Status || old == nil || reflect.DeepEqual(o.Object["status"], old.Object["status"]) {
		return false
	}
	rest := func(of *unstructured.Unstructured) map[string]any {
		fields := maps.Clone(of.Object)
		for _, name := range append(slices.Clone(objectFields), "status") {
			delete(fields, name)
		}
		return fields
	}
	return reflect.DeepEqual(rest(o), rest(old))
}

// fieldErrors returns the errors of the validation library, in the order of their fields: the library reads
// them from a map.
func fieldErrors(result *validate.Result) (wrong field.ErrorList) {
	for _, err := range result.Errors {
		wrong = append(wrong, fieldError(err))
	}
	slices.SortStableFunc(wrong, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return wrong
}

// fieldError returns an error of the validation library as one of a field.
func fieldError(err error) *field.Error {
	var one *openapierrors.Validation
	if !errors.As(err, &one) {
		return field.Invalid(nil, "", err.Error())
	}
	var path *field.Path
	if name := strings.TrimPrefix(one.Name, "."); name != "" {
		path = field.NewPath(name)
	}
	switch one.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "")
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(path, one.Value, one.Error())
	case openapierrors.EnumFailCode:
		return field.NotSupported(path, one.Value, allowedTexts(one.Values))
	case openapierrors.TooLongFailCode:
		return &field.Error{Type: field.ErrorTypeTooLong, Field: path.String(), BadValue: "", Detail: one.Error()}
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		return &field.Error{Type: field.ErrorTypeTooMany, Field: path.String(), BadValue: one.Value, Detail: one.Error()}
	}
	return field.Invalid(path, one.Value, one.Error())
}

// allowedTexts returns the values of an enum as an error shows them: texts as they are, others
// as JSON.
func allowedTexts(values []any) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		if text, isText := value.(string); isText {
			texts[i] = text
		} else if encoded, err := json.Marshal(value); err == nil {
			texts[i] = string(encoded)
		}
	}
	return texts
}
