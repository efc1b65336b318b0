package cel

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/registry/crd"
)

// Rules evaluates rules as Kubernetes does. The zero value is ready for use.
type Rules struct{}

var _ crd.Rules = Rules{}

// Check returns what is wrong with the rules of a CustomResourceDefinition in JSON, and with its
// schemas: rules that do not compile, or are estimated to cost too much. The cost of a rule whose
// schema is the same in old, the definition that is replaced, is not limited; old is nil for a
// new definition.
func (Rules) Check(definition, old json.RawMessage) field.ErrorList {
	now, err := definitionOf(definition)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), "", err.Error())}
	}
	before, err := definitionOf(old)
	if old == nil || err != nil { // Kubernetes would refuse it, so it has no rules to keep
		return ofSchemas(validation.ValidateCustomResourceDefinition(context.Background(), now))
	}
	return ofSchemas(validation.ValidateCustomResourceDefinitionUpdate(context.Background(), now, before))
}

// definitionOf returns a definition as the library has it.
func definitionOf(text json.RawMessage) (*apiextensions.CustomResourceDefinition, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, d); err != nil {
		return nil, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	internal := &apiextensions.CustomResourceDefinition{}
	return internal, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d, internal, nil)
}

// schemaField matches the fields of schemas. If the schemas of all versions are equal, the library
// has one in their place, spec.validation.
var schemaField = regexp.MustCompile(`^spec\.(validation|versions\[\d+\]\.schema)\b`)

// ofSchemas returns the errors that are of schemas. Package crd finds the others.
func ofSchemas(wrong field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(wrong, func(err *field.Error) bool { return !schemaField.MatchString(err.Field) })
}

// Compile returns an evaluator of the rules of a schema in JSON.
func (Rules) Compile(text json.RawMessage) crd.Evaluate {
	compiled := sync.OnceValues(func() (*rules, error) { return compile(text) })
	return func(ctx context.Context, o, old *unstructured.Unstructured) (field.ErrorList, []string) {
		r, err := compiled()
		if err != nil {
			return field.ErrorList{field.InternalError(nil, fmt.Errorf("the schema has rules that cannot be evaluated: %w", err))}, nil
		}
		return r.evaluate(ctx, o, old)
	}
}

// rules are those of a schema.
type rules struct {
	schema    *schema.Structural
	validator *cel.Validator
}

func compile(text json.RawMessage) (*rules, error) {
	external, internal := &apiextensionsv1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, external); err != nil {
		return nil, err
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, internal, nil); err != nil {
		return nil, err
	}
	s, err := schema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	return &rules{s, cel.NewValidator(s, true, limits.PerCallLimit)}, nil
}

// evaluate returns what is wrong with an object, and what is as wrong as it was in old.
func (r *rules) evaluate(ctx context.Context, o, old *unstructured.Unstructured) (wrong field.ErrorList, warnings []string) {
	ctx = warning.WithWarningRecorder(ctx, recorder{&warnings})
	if old == nil {
		wrong, _ = r.validator.Validate(ctx, nil, r.schema, o.Object, nil, limits.RuntimeCELCostBudget)
		return wrong, warnings
	}
	both := common.NewCorrelatedObject(o.Object, old.Object, &model.Structural{Structural: r.schema})
	wrong, _ = r.validator.Validate(ctx, nil, r.schema, o.Object, old.Object, limits.RuntimeCELCostBudget, cel.WithRatcheting(both))
	return wrong, warnings
}

// recorder appends the library's warnings to a list.
type recorder struct{ to *[]string }

func (r recorder) AddWarning(_, text string) { *r.to = append(*r.to, text) }
