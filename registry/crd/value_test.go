package crd_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

// storeOf returns a store of things whose spec has a schema.
func storeOf(t *testing.T, spec string, edit ...func(*registry.Config[unstructured.Unstructured])) *registry.Store[unstructured.Unstructured] {
	t.Helper()
	all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", "{type: object, properties: {spec: "+spec+"}}", 1)))
	require.NoError(t, err)
	cfg := all[0].Config()
	for _, e := range edit {
		e(&cfg)
	}
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// wrongFields returns the fields that a creation with that spec is refused for.
func wrongFields(t *testing.T, s *registry.Store[unstructured.Unstructured], spec string) (fields []string) {
	t.Helper()
	_, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"generateName":"a-"},"spec":`+spec+`}`), registry.WriteOptions{})
	if err == nil {
		return nil
	}
	var invalid *registry.InvalidError
	require.ErrorAs(t, err, &invalid)
	for _, e := range invalid.Errors {
		fields = append(fields, strings.Trim(string(e.Type), " ")+" "+e.Field)
	}
	slices.Sort(fields)
	return fields
}

// The errors of an object are in the order of its fields, which are in a map.
func TestSchema_ErrorsHaveOneOrder(t *testing.T) {
	s := storeOf(t, `{type: object, additionalProperties: {type: object, properties: {a: {type: integer, maximum: 1, multipleOf: 2}, b: {type: integer}}}}`)
	want := []string{
		"spec.k.a should be a multiple of 2", "spec.k.a should be less than or equal to 1", "spec.k.b must be of type integer",
		"spec.l.b must be of type integer", "spec.m.b must be of type integer", "spec.n.b must be of type integer",
	}
	for range 20 {
		_, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"k":{"a":3,"b":"x"},"l":{"b":"x"},"m":{"b":"x"},"n":{"b":"x"}}}`), registry.WriteOptions{})
		var invalid *registry.InvalidError
		require.ErrorAs(t, err, &invalid)
		var got []string
		for _, e := range invalid.Errors {
			_, what, _ := strings.Cut(e.Detail, " in body ")
			got = append(got, e.Field+" "+strings.TrimSuffix(what, `: "string"`))
		}
		require.Equal(t, want, got)
	}
}

// A default may contain defaults. Each object has a copy, so an admitter that changes one changes no other.
func TestSchema_DefaultsAreEachObjectsOwn(t *testing.T) {
	const limits = `{type: object, default: {}, x-kubernetes-preserve-unknown-fields: true, properties: {cpu: {type: integer, default: 2}}}`
	s := storeOf(t, `{type: object, properties: {limits: `+limits+`, list: {type: array, items: `+limits+`}}}`, func(cfg *registry.Config[unstructured.Unstructured]) {
		cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
			o := a.Object.(*unstructured.Unstructured)
			spec := o.Object["spec"].(map[string]any)
			for _, limits := range []any{spec["limits"], spec["list"].([]any)[0]} {
				limits.(map[string]any)[o.GetName()] = true
			}
			return nil
		})}
	})
	for _, name := range []string{"a", "b"} {
		it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"`+name+`"},"spec":{"list":[null]}}`), registry.WriteOptions{})
		require.NoError(t, err)
		o, err := s.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
		require.NoError(t, err)
		want := map[string]any{"cpu": int64(2), name: true}
		require.Equal(t, map[string]any{"limits": want, "list": []any{want}}, o.Value.Object["spec"])
	}
}

// Null where there may be none is the same as missing.
func TestSchema_NullIsKeptOnlyWhereItMayBe(t *testing.T) {
	s := storeOf(t, `{type: object, required: [needed], properties: {needed: {type: string, nullable: true}, n: {type: integer}, any: {x-kubernetes-preserve-unknown-fields: true},
		may: {type: object, nullable: true}, size: {type: integer, default: 3}, list: {type: array, items: {type: string, default: x}},
		map: {type: object, additionalProperties: {type: integer}}, full: {type: object, additionalProperties: {type: integer, default: 1}}}}`)
	it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"needed":null,"n":null,"any":null,"may":null,"size":null,"list":[null],
		"map":{"a":null,"b":1},"full":{"a":null}}}`), registry.WriteOptions{})
	require.NoError(t, err)
	o, err := s.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"needed": nil, "may": nil, "size": int64(3), "list": []any{"x"}, "map": map[string]any{"b": int64(1)}, "full": map[string]any{"a": int64(1)},
	}, o.Value.Object["spec"])
	require.Equal(t, []string{"FieldValueRequired spec.needed"}, wrongFields(t, s, `{}`))
	require.NotEmpty(t, wrongFields(t, storeOf(t, "{type: array, items: {type: string}}"), `[null]`))
}

func TestSchema_IntOrStringIsNothingElse(t *testing.T) {
	s := storeOf(t, "{type: object, properties: {port: {x-kubernetes-int-or-string: true}, ports: {type: array, items: {x-kubernetes-int-or-string: true}}, named: {type: object, additionalProperties: {x-kubernetes-int-or-string: true}}}}")
	for spec, want := range map[string][]string{
		`{"port":80,"ports":["http",443],"named":{"a":1,"b":"c"}}`: nil,
		`{"port":true}`:         {"FieldValueTypeInvalid spec.port"},
		`{"port":{}}`:           {"FieldValueTypeInvalid spec.port"},
		`{"port":1.5}`:          {"FieldValueTypeInvalid spec.port"},
		`{"ports":[[]]}`:        {"FieldValueTypeInvalid spec.ports[0]"},
		`{"named":{"a":false}}`: {"FieldValueTypeInvalid spec.named.a"},
	} {
		require.Equal(t, want, wrongFields(t, s, spec), spec)
	}
}

const lists = `{type: object, properties: {
	set: {type: array, x-kubernetes-list-type: set, items: {x-kubernetes-preserve-unknown-fields: true}},
	map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, port], items: {type: object, properties: {name: {type: string}, port: {type: integer}, value: {type: string}}}},
	open: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {x-kubernetes-preserve-unknown-fields: true, nullable: true}},
	any: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}}}`

func TestSchema_ItemsOfSetsAndMapsAreUnique(t *testing.T) {
	s := storeOf(t, lists)
	for spec, want := range map[string][]string{
		`{"any":["a","a"],"set":["a","b",1,"1",[1],{"a":1}],"map":[{"name":"a"},{"name":"a","port":1},{"port":1},{}]}`: nil,
		`{"set":["a","b","a","a"]}`:                             {"FieldValueDuplicate spec.set[2]", "FieldValueDuplicate spec.set[3]"},
		`{"set":[{"a":1,"b":[2]},{"b":[2],"a":1}]}`:             {"FieldValueDuplicate spec.set[1]"},
		`{"map":[{"name":"a","value":"x"},{"name":"a"}]}`:       {"FieldValueDuplicate spec.map[1]"},
		`{"map":[{"name":"a","port":1},{"port":1,"name":"a"}]}`: {"FieldValueDuplicate spec.map[1]"},
		`{"set":[1,1.0]}`:                                       {"FieldValueDuplicate spec.set[1]"},
		`{"open":[null,{}]}`:                                    {"FieldValueDuplicate spec.open[1]"},
		`{"open":[{},{},5]}`:                                    {"FieldValueInvalid spec.open[2]"},
	} {
		require.Equal(t, want, wrongFields(t, s, spec), spec)
	}
}

// An object that has repeated items from before its definition forbade them can be changed.
func TestSchema_RepeatedItemsThatWereThereMayStay(t *testing.T) {
	defined, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", "{type: object, properties: {spec: "+lists+"}}", 1)))
	require.NoError(t, err)
	validate := defined[0].Config().Strategy.Validate
	with := func(items ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"set": items}}}
	}
	require.Len(t, validate(t.Context(), with("a", "a"), nil), 1)
	require.Len(t, validate(t.Context(), with("a", "a"), with("a")), 1)
	require.Empty(t, validate(t.Context(), with("a", "a", "b", "b"), with("c", "c")))

	open := func(items ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"open": items}}}
	}
	require.Empty(t, validate(t.Context(), open("a", map[string]any{}, map[string]any{}), open("a")), "so it is with items that are not objects")
}

func TestSchema_EmbeddedResourcesHaveKindAndMetadata(t *testing.T) {
	s := storeOf(t, "{type: array, items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}")
	for item, want := range map[string][]string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"a":"b"}},"spec":{}}`: nil,
		`{"apiVersion":"v1","kind":"Pod"}`:                 nil,
		`{"apiVersion":"v1","kind":"Pod","metadata":null}`: nil,
		`{"kind":"Pod"}`:                                                            {"FieldValueRequired spec[0].apiVersion"},
		`{"apiVersion":"v1","kind":""}`:                                             {"FieldValueInvalid spec[0].kind"},
		`{"apiVersion":1,"kind":[]}`:                                                {"FieldValueInvalid spec[0].apiVersion", "FieldValueInvalid spec[0].kind"},
		`{"apiVersion":"a/b/c","kind":"No Kind"}`:                                   {"FieldValueInvalid spec[0].apiVersion", "FieldValueInvalid spec[0].kind"},
		`{"apiVersion":"v1","kind":"Pod","metadata":"a"}`:                           {"FieldValueInvalid spec[0].metadata"},
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":1}}`:                    {"FieldValueInvalid spec[0].metadata"},
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a/b"}}`:                {"FieldValueInvalid spec[0].metadata.name"},
		`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b c"}}}`:        {"FieldValueInvalid spec[0].metadata.labels"},
		`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"No","name":"a"}}`: {"FieldValueInvalid spec[0].metadata.namespace"},
	} {
		require.Equal(t, want, wrongFields(t, s, "["+item+"]"), item)
	}
}

// The unknown fields of an embedded resource's metadata are dropped, and told, as those of the
// object's own.
func TestSchema_EmbeddedMetadataHasNoUnknownFields(t *testing.T) {
	s := storeOf(t, "{type: array, items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}")
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":[
		{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","annotation":{"c":"d"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1","of":2}]},"more":1}]}`), opts)
	require.NoError(t, err)
	require.Equal(t, []string{`unknown field "spec[0].metadata.annotation"`, `unknown field "spec[0].metadata.ownerReferences[0].of"`}, warnings)
	o, err := s.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "more": int64(1), "metadata": map[string]any{
		"name": "b", "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}},
	}}}, o.Value.Object["spec"])
	_, err = s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"b"},"spec":[{"apiVersion":"v1","kind":"Pod","metadata":{"nam":"b"}}]}`),
		registry.WriteOptions{Validation: registry.RefuseUnknown})
	require.ErrorContains(t, err, `unknown field "spec[0].metadata.nam"`)
}

// The types of errors are those of Kubernetes, since programs and tests look at causes.
func TestSchema_ErrorsHaveTheTypesOfKubernetes(t *testing.T) {
	s := storeOf(t, `{type: object, required: [size], properties: {size: {type: integer, maximum: 3}, color: {type: string, enum: [red, green]}, level: {type: integer, enum: [1, 2]},
		name: {type: string, maxLength: 2}, list: {type: array, maxItems: 1, items: {type: integer}}, map: {type: object, maxProperties: 1, additionalProperties: {type: integer}}}}`)
	for spec, want := range map[string]string{
		`{}`:                               "FieldValueRequired spec.size",
		`{"size":4}`:                       "FieldValueInvalid spec.size",
		`{"size":"a"}`:                     "FieldValueTypeInvalid spec.size",
		`{"size":1,"color":"blue"}`:        "FieldValueNotSupported spec.color",
		`{"size":1,"level":3}`:             "FieldValueNotSupported spec.level",
		`{"size":1,"name":"long"}`:         "FieldValueTooLong spec.name",
		`{"size":1,"list":[1,2]}`:          "FieldValueTooMany spec.list",
		`{"size":1,"map":{"a":1,"b":2}}`:   "FieldValueTooMany spec.map",
		`{"size":1,"map":{"a":1,"b":"x"}}`: "FieldValueTooMany spec.map",
	} {
		require.Equal(t, want, wrongFields(t, s, spec)[0], spec)
	}
	_, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":1,"color":"blue","level":3}}`), registry.WriteOptions{})
	require.ErrorContains(t, err, `spec.color: Unsupported value: "blue": supported values: "red", "green"`)
	require.ErrorContains(t, err, `spec.level: Unsupported value: 3: supported values: "1", "2"`)
}

// Whatever the values are, a list has as many errors as items that an earlier one equals.
func TestSchema_PropertyRepeatedItemsAreCountedOnce(t *testing.T) {
	s := storeOf(t, lists)
	rng := rand.New(rand.NewPCG(1, 2))
	values := []string{"1", `"1"`, "null", "true", "[]", "{}", `{"a":1}`, `{"a":[1]}`, `{"a":[1],"b":null}`, "-1", `"a"`}
	for range 300 {
		seen, repeated, items := map[string]bool{}, 0, []string{}
		for range rng.IntN(8) {
			v := values[rng.IntN(len(values))]
			if seen[v] {
				repeated++
			}
			seen[v] = true
			items = append(items, v)
		}
		require.Len(t, wrongFields(t, s, `{"set":[`+strings.Join(items, ",")+`]}`), repeated, "%v", items)
	}
}

func TestParse_RefusesListsThatCannotBe(t *testing.T) {
	for property, mention := range map[string]string{
		"{type: array, x-kubernetes-list-type: bag, items: {type: string}}":              `spec has the x-kubernetes-list-type "bag": give one of atomic, set, map`,
		"{type: array, x-kubernetes-list-type: map, items: {type: object}}":              "spec needs both",
		"{type: array, x-kubernetes-list-map-keys: [name], items: {type: object}}":       "spec needs both",
		"{type: object, properties: {a: {type: array, x-kubernetes-list-type: unique}}}": `spec.a has the x-kubernetes-list-type "unique"`,
	} {
		_, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", "{type: object, properties: {spec: "+property+"}}", 1)))
		require.ErrorIs(t, err, crd.ErrManifest, property)
		require.ErrorContains(t, err, mention)
	}
}
