package crd_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry/crd"
)

// Each error names the path in the manifest, and what can be there.
func TestParse_NamesThePathOfWhatNoKindCanHave(t *testing.T) {
	good, err := os.ReadFile("testdata/widgets.yaml")
	require.NoError(t, err)
	for mention, edit := range map[string][2]string{
		`spec.group is "example_com"`:                                              {"group: example.com", "group: example_com"},
		`spec.names.plural is ""`:                                                  {"plural: widgets", `plural: ""`},
		`spec.names.kind is ""`:                                                    {"kind: Widget\n", "kind:\n"},
		`spec.names.singular is "WIDGET"`:                                          {"singular: widget", "singular: WIDGET"},
		`spec.names.shortNames[0] is "WD"`:                                         {"[wd]", "[WD]"},
		`spec.versions[1].name is "V_1"`:                                           {"name: v1\n", "name: V_1\n"},
		`spec.versions[1].name is "v1", which another version has`:                 {"name: v1beta1", "name: v1"},
		"spec.versions[1].storage is true, as for v1beta1":                         {"storage: false", "storage: true"},
		`spec.versions.additionalPrinterColumns[0].type is "int"`:                  {"{name: Size, type: integer,", "{name: Size, type: int,"},
		"spec.versions.additionalPrinterColumns[0].name is missing":                {"{name: Size,", "{"},
		`spec.size has the type "int": give one of array`:                          {"size:\n                type: integer", "size:\n                type: int"},
		"spec.parts[*].name has a pattern that does not parse":                     {"^[a-z]+$", "["},
		"spec.port has a $ref":                                                     {"x-kubernetes-int-or-string: true", "$ref: '#/port'"},
		"spec.color has a default that its schema does not allow":                  {"default: grey", "default: blue"},
		`count has a default that its schema does not allow: Invalid value: "stri`: {"default: 1}", "default: many}"},
	} {
		text := strings.Replace(string(good), edit[0], edit[1], 1)
		require.NotEqual(t, string(good), text, mention)
		_, err := crd.Parse(strings.NewReader(text))
		require.ErrorIs(t, err, crd.ErrManifest, mention)
		require.ErrorContains(t, err, mention)
	}
}

// As in Kubernetes, a default must be whole: those in it are not set first. Below additionalProperties none is looked at.
func TestParse_TakesDefaultsThatTheirSchemaAllows(t *testing.T) {
	for property, refused := range map[string]bool{
		"{x-kubernetes-int-or-string: true, default: 80}": false, "{x-kubernetes-int-or-string: true, default: http}": false, "{type: number, default: 1}": false, "{type: string, nullable: true, default: null}": false,
		"{type: array, items: {type: string}, default: [a]}": false, "{x-kubernetes-preserve-unknown-fields: true, default: any}": false,
		"{type: object, default: {}, required: [a], properties: {a: {type: integer, default: 1}}}":        true,
		"{type: object, default: {a: 1}, required: [a], properties: {a: {type: integer, default: 1}}}":    false,
		"{type: object, default: {}, not: {required: [a]}, properties: {a: {type: integer, default: 1}}}": false,
		"{type: array, items: {type: integer, default: x}}":                                               true,
		"{type: object, additionalProperties: {type: integer, default: x}}":                               false,
	} {
		_, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", "{type: object, properties: {spec: "+property+"}}", 1)))
		require.Equal(t, refused, err != nil, "%s: %v", property, err)
		if refused {
			require.ErrorContains(t, err, "has a default that its schema does not allow")
		}
	}
}

// A schema is structural, as Kubernetes demands: what has no type is not checked.
func TestParse_DemandsATypeWhereverAFieldIsDeclared(t *testing.T) {
	parse := func(object string) error {
		_, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", object, 1)))
		return err
	}
	for object, mention := range map[string]string{
		"{description: A thing.}":                                                                    "the object has no type: give one of array",
		"{type: array, items: {type: string}}":                                                       `the object has the type "array": give object`,
		"{type: object, properties: {spec: {}}}":                                                     "spec has no type",
		"{type: object, properties: {spec: null}}":                                                   "the property spec has no schema: give at least its type",
		"{type: object, properties: {spec: {type: array, items: {minimum: 1}}}}":                     "spec[*] has no type",
		"{type: object, properties: {spec: {type: object, additionalProperties: {nullable: true}}}}": "spec.* has no type",
		"{type: object, properties: {spec: {x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}": "spec is an embedded resource: give the type object",
	} {
		err := parse(object)
		require.ErrorIs(t, err, crd.ErrManifest, object)
		require.ErrorContains(t, err, mention)
	}
	for _, object := range []string{
		"{x-kubernetes-preserve-unknown-fields: true}", "{type: object, properties: {spec: {x-kubernetes-preserve-unknown-fields: true}}}",
		"{type: object, properties: {spec: {x-kubernetes-int-or-string: true}}}", "{type: object, properties: {spec: {type: object, anyOf: [{required: [a]}, {properties: {b: {minimum: 1}}}]}}}",
	} {
		require.NoError(t, parse(object), object)
	}
}

// The validation library keeps every pattern that it has met, and takes time by the square of their number.
func TestParse_BoundsThePatternsOfASchema(t *testing.T) {
	of := func(patterns int) error {
		var properties []string
		for i := range 2 * patterns {
			properties = append(properties, fmt.Sprintf(`f%d: {type: string, anyOf: [{pattern: "^x%d"}, {maxLength: 1}]}`, i, i/2))
		}
		schema := "{type: object, properties: {" + strings.Join(properties, ", ") + "}}"
		_, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", schema, 1)))
		return err
	}
	require.NoError(t, of(1000))
	err := of(1001)
	require.ErrorIs(t, err, crd.ErrManifest)
	require.ErrorContains(t, err, "spec.versions.schema.openAPIV3Schema cannot be used: it has 1001 different patterns: give at most 1000")
}
