package cel_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/registry/crd/cel"
)

// one is a schema with a rule, and costly has one that costs too much.
const (
	one    = `properties: {spec: {type: object, x-kubernetes-validations: [{rule: self.teeth > 3}], properties: {teeth: {type: integer}}}}`
	costly = `properties: {spec: {type: object, properties: {sizes: {type: array, maxItems: 2500, items: {type: integer}, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, a == b))'}]}}}}`
)

func TestCheck_RefusesWhatKubernetesRefuses(t *testing.T) {
	const (
		first = ".x-kubernetes-validations[0]"
		names = "properties: {spec: {type: object, properties: {names: {type: array, maxItems: 5, items: {type: string, maxLength: 5, x-kubernetes-validations: [{rule: self == oldSelf}]}}}}}"
	)
	teeth := func(with string) string {
		return strings.Replace(one, "teeth: {type: integer}", "teeth: {type: integer"+with, 1)
	}
	for _, c := range []struct {
		schema, at string
		kind       field.ErrorType
		mention    string
	}{
		{rule("rule: self.tooth > 3"), first + ".rule", field.ErrorTypeInvalid, "undefined field 'tooth'"},
		{rule("rule: 'self.teeth >'"), first + ".rule", field.ErrorTypeInvalid, "Syntax error"},
		{rule("rule: self.teeth"), first + ".rule", field.ErrorTypeInvalid, "must evaluate to a bool"},
		{rule("rule: ''"), first + ".rule", field.ErrorTypeRequired, ""},
		{rule("rule: 'true', messageExpression: '1'"), first + ".messageExpression", field.ErrorTypeInvalid, "must evaluate to a string"},
		{rule("rule: 'true', reason: FieldValueOdd"), first + ".reason", field.ErrorTypeNotSupported, ""},
		{rule("rule: 'true', fieldPath: .tooth"), first + ".fieldPath", field.ErrorTypeInvalid, ""},
		{rule("rule: 'true', optionalOldSelf: true"), first + ".optionalOldSelf", field.ErrorTypeInvalid, "oldSelf"},
		{costly, ".properties[sizes]" + first + ".rule", field.ErrorTypeForbidden, "exceeds budget"},
		{names, ".properties[names].items" + first + ".rule", field.ErrorTypeInvalid, "uncorrelatable"},
		{teeth("}, names: {type: array, uniqueItems: true, items: {type: string}}"), ".properties[names].uniqueItems", field.ErrorTypeForbidden, ""},
		{teeth("}}, default: {teeth: 3"), ".default", field.ErrorTypeInvalid, "failed rule"},
	} {
		wrong := cel.Rules{}.Check(inJSON(t, manifest(c.schema)), nil)
		require.NotEmpty(t, wrong, c)
		require.Equal(t, "spec.validation.openAPIV3Schema.properties[spec]"+c.at, wrong[0].Field, c)
		require.Equal(t, c.kind, wrong[0].Type, c)
		require.Contains(t, wrong[0].Detail, c.mention)
	}
}

// rule is the schema one with another rule.
func rule(text string) string { return strings.Replace(one, "rule: self.teeth > 3", text, 1) }

func TestCheck_NamesTheVersionsThatDiffer(t *testing.T) {
	wrong := cel.Rules{}.Check(inJSON(t, manifest(one, rule("rule: self.tooth > 3"))), nil)
	require.Len(t, wrong, 1)
	require.Equal(t, "spec.versions[1].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule", wrong[0].Field)
	for _, schemas := range [][]string{{one}, {one, one}, {one, rule("rule: self.teeth > 5")}} {
		require.Empty(t, cel.Rules{}.Check(inJSON(t, manifest(schemas...)), nil), schemas)
	}
}

// Each rule costs less than a rule may, and all of them more than a schema may.
func TestCheck_BoundsTheCostOfASchema(t *testing.T) {
	rules := strings.Repeat(", {rule: 'self.all(a, self.all(b, a == b))'}", 30)[2:]
	schema := `properties: {spec: {type: object, properties: {sizes: {type: array, maxItems: 900, items: {type: integer}, x-kubernetes-validations: [` + rules + `]}}}}`
	wrong := cel.Rules{}.Check(inJSON(t, manifest(schema)), nil)
	require.NotEmpty(t, wrong)
	for _, err := range wrong {
		require.Equal(t, field.ErrorTypeForbidden, err.Type)
		require.Contains(t, err.Detail, "entire OpenAPIv3 schema")
	}
	require.Empty(t, cel.Rules{}.Check(inJSON(t, manifest(strings.Replace(schema, rules, rules[:strings.Index(rules, ", {")], 1))), nil), "one of them is not too many")
}

// What a definition that is replaced has may stay: the estimates of another version may be higher.
func TestCheck_AllowsTheCostThatASchemaHas(t *testing.T) {
	old := inJSON(t, manifest(costly))
	renamed := inJSON(t, strings.Replace(manifest(costly), "kind: Gear", "kind: Gear, shortNames: [g]", 1))
	require.Empty(t, cel.Rules{}.Check(renamed, old))
	changed := inJSON(t, manifest(strings.Replace(costly, "properties: {sizes", "properties: {teeth: {type: integer}, sizes", 1)))
	require.NotEmpty(t, cel.Rules{}.Check(changed, old))
}

func TestCheck_RefusesWhatIsNoDefinition(t *testing.T) {
	wrong := cel.Rules{}.Check([]byte(`{"spec":5}`), nil)
	require.Len(t, wrong, 1)
	require.Equal(t, "spec", wrong[0].Field)
}

func TestParse_RefusesRulesThatDoNotCompile(t *testing.T) {
	_, err := crd.Options{Rules: cel.Rules{}}.Parse(strings.NewReader(manifest(rule("rule: self.tooth > 3"))))
	require.ErrorIs(t, err, crd.ErrManifest)
	require.ErrorContains(t, err, `"gears.example.com": spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value`)
}
