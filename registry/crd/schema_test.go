package crd_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

func TestSchema_KeepsUnknownFieldsWhereTheManifestSaysSo(t *testing.T) {
	for edit, kept := range map[string]bool{"": false, "  preserveUnknownFields: true\n": true} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "  versions:", edit+"  versions:", 1)))
		require.NoError(t, err)
		s, err := registry.New(all[0].Config())
		require.NoError(t, err)
		it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"more":1}`), registry.WriteOptions{})
		require.NoError(t, err)
		text, err := it.JSON()
		require.NoError(t, err)
		require.Equal(t, kept, strings.Contains(string(text), `"more":1`), string(text))
		require.NoError(t, s.Close())
	}
}

// The paths of what is pruned have the names of the fields above, which may be as long as a body.
func TestSchema_TellsTheFirstPathsAloneThatItPrunes(t *testing.T) {
	prune := cogs(t, versioned{"v1", `"parts":{"type":"object","additionalProperties":{"type":"object","properties":{"size":{"type":"integer"}}}}`, true, true})["v1"].Config().Prune
	long := strings.Repeat("x", 100_000)
	part := map[string]any{"size": int64(1)}
	for i := range 2000 {
		part[fmt.Sprintf("f%04d", i)] = int64(i)
	}
	o := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parts": map[string]any{long: part}}}}
	gone := prune(&o)
	require.Equal(t, map[string]any{"size": int64(1)}, part)
	require.Len(t, gone, 100)
	require.Less(t, len(strings.Join(gone, "")), 1_000_000)
	require.Equal(t, "spec.parts."+long[:200]+"….f0000", gone[0])
	require.Equal(t, []string{"spec.other"}, prune(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"other": true}}}))
}

func TestSchema_DefaultsPrunesAndValidates(t *testing.T) {
	object, _, s := newWidgets(t)
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	it, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":3,"colour":"x","color":null,
		"parts":[{"name":"x","more":1}],"extra":{"any":{"thing":1}},"limits":{"cpu":1},"port":"http"}}`), opts)
	require.NoError(t, err)
	require.Equal(t, []string{`unknown field "spec.colour"`, `unknown field "spec.parts[0].more"`}, warnings)
	o, err := s.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"size": int64(3), "color": "grey", "port": "http", "limits": map[string]any{"cpu": int64(1)},
		"parts": []any{map[string]any{"name": "x", "count": int64(1)}}, "extra": map[string]any{"any": map[string]any{"thing": int64(1)}},
	}, o.Value.Object["spec"])
	require.Equal(t, []string{"a", "default", "grey"}, o.Fields, "the third is spec.color")

	for body, fields := range map[string][]string{
		`{"spec":{"size":-1}}`:                 {".spec.size", "spec.size"}, // which is the scale's, too
		`{"spec":{"size":101,"color":"blue"}}`: {"spec.color", "spec.size"},
		`{"spec":{"size":"big"}}`:              {".spec.size", "spec.size"},
		`{"spec":{}}`:                          {"spec.size"},
		`{}`:                                   {"spec"},
		`{"spec":{"size":1,"parts":[{"name":"X"}]}}`:                                        {"spec.parts[0].name"},
		`{"spec":{"size":1,"limits":{"cpu":"x"}}}`:                                          {"spec.limits.cpu"},
		`{"spec":{"size":1,"parts":[{"name":"x"},{"name":"x"},{"name":"x"},{"name":"x"}]}}`: {"spec.parts"},
	} {
		_, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"bad"},`+strings.TrimPrefix(strings.Replace(body, "{}", `{"x":1}`, 1), "{")), registry.WriteOptions{Validation: registry.IgnoreUnknown})
		var invalid *registry.InvalidError
		require.ErrorAs(t, err, &invalid, body)
		var got []string
		for _, e := range invalid.Errors {
			got = append(got, e.Field)
		}
		slices.Sort(got)
		require.Equal(t, fields, got, "%s: %v", body, err)
	}
}

func TestSchema_FurtherPropertiesAreKeptIfTheyMayBe(t *testing.T) {
	for _, further := range []string{"true", "{type: integer}"} {
		s := storeOf(t, "{type: object, additionalProperties: "+further+"}")
		require.JSONEq(t, `{"more":1}`, kept(t, s, `{"more":1}`), further)
	}
	require.Equal(t, []string{"FieldValueInvalid spec"}, wrongFields(t, storeOf(t, "{type: object, additionalProperties: false}"), `{"more":1}`))
}

// kept returns the spec of a creation as it is stored.
func kept(t *testing.T, s *registry.Store[unstructured.Unstructured], spec string) string {
	t.Helper()
	it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"generateName":"a-"},"spec":`+spec+`}`), registry.WriteOptions{})
	require.NoError(t, err)
	o, err := s.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
	require.NoError(t, err)
	text, err := json.Marshal(o.Value.Object["spec"])
	require.NoError(t, err)
	return string(text)
}

// Kubernetes keeps such fields, and what their values are. Of the fields inside of them nothing is said.
func TestSchema_FurtherPropertiesOfNoSchemaHaveNoFields(t *testing.T) {
	s := storeOf(t, "{type: object, properties: {map: {type: object, additionalProperties: true}}}")
	require.JSONEq(t, `{"map":{"a":1,"b":null,"c":["d",{}],"e":{}}}`, kept(t, s, `{"map":{"a":1,"b":null,"c":["d",{"f":1}],"e":{"g":{"h":1}}}}`))
}

// A list may say of its items that they keep unknown fields. Known fields of the items obey their schemas.
func TestSchema_ItemsOfAListMayHaveUnknownFields(t *testing.T) {
	s := storeOf(t, "{type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: object, properties: {b: {type: integer}}}}}}")
	require.JSONEq(t, `[{"a":{"b":1},"c":{"d":1}}]`, kept(t, s, `[{"a":{"b":1,"x":2},"c":{"d":1}}]`))
	s = storeOf(t, "{type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: array, items: {type: object}}}")
	require.JSONEq(t, `[[{"a":1}]]`, kept(t, s, `[[{"a":1}]]`))
}
