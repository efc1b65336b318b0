package catalog_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	openapi "k8s.io/kube-openapi/pkg/util/proto"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/catalog"
)

// definitions returns the schemas of the document of OpenAPI v2 of resources.
func definitions(t require.TestingT, of ...*registry.Info) map[string]map[string]any {
	var doc struct{ Definitions map[string]map[string]any }
	require.NoError(t, json.Unmarshal(catalog.New(of, version).V2JSON().Body, &doc))
	return doc.Definitions
}

// widgetOf returns the description of widgets whose schema has these words besides its type.
func widgetOf(words string) *registry.Info {
	widgets := resource("example.com", "v1", "Widget", "")
	widgets.Schema = json.RawMessage(`{"type":"object",` + words + `}`)
	return widgets
}

// parse reads the document in both forms by the library that clients read it by, and returns it
// after it has compared the two.
func parse(t require.TestingT, of ...*registry.Info) *openapi_v2.Document {
	c := catalog.New(of, version)
	strict, err := openapi_v2.ParseDocument(c.V2JSON().Body)
	require.NoError(t, err, "%s", c.V2JSON().Body)
	doc := &openapi_v2.Document{}
	require.NoError(t, proto.Unmarshal(c.V2Protobuf().Body, doc))
	asJSON := func(d *openapi_v2.Document) string {
		text, err := d.YAMLValue("")
		require.NoError(t, err)
		text, err = yaml.YAMLToJSON(text)
		require.NoError(t, err)
		return string(text)
	}
	require.JSONEq(t, asJSON(strict), asJSON(doc))
	return doc
}

func TestOpenAPIV2_IsTheSameInBothForms(t *testing.T) {
	doc := parse(t, append(resources(), widgetEverything())...)
	require.Equal(t, "2.0 watchmill "+version, doc.Swagger+" "+doc.Info.Title+" "+doc.Info.Version)
	models, err := openapi.NewOpenAPIData(doc)
	require.NoError(t, err)
	names := []string{
		"autoscaling.v1.Scale", "com.example.v1.Everything", "com.example.v1.EverythingList", "com.example.v1.Widget", "com.example.v1.WidgetList", "com.example.v1.Zone", "com.example.v1.ZoneList",
		"com.example.v1beta1.Widget", "com.example.v1beta1.WidgetList",
		"io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
		"org.other.v2.Gear", "org.other.v2.GearList",
	}
	require.Equal(t, names, models.ListModels())
	require.Equal(t, []any{map[any]any{"group": "example.com", "version": "v1", "kind": "Widget"}}, models.LookupModel("com.example.v1.Widget").GetExtensions()["x-kubernetes-group-version-kind"])
}

// widgetEverything has all words that are kept.
func widgetEverything() *registry.Info {
	info := resource("example.com", "v1", "Everything", "")
	info.Schema = json.RawMessage(`{"type":"object","title":"All","required":["spec"],"properties":{"spec":{
		"type":"object","description":"Words.","minProperties":1,"maxProperties":9,"example":{"a":[1,null]},"properties":{
			"text":{"type":"string","format":"byte","pattern":"^a|b$","minLength":2,"maxLength":3,"enum":["ab","abb"],"default":"ab"},
			"size":{"type":"number","minimum":-0.5,"maximum":1e9,"exclusiveMinimum":true,"exclusiveMaximum":true,"multipleOf":0.25},
			"list":{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true,"items":{"type":"integer","format":"int64","readOnly":true},"x-kubernetes-list-type":"set"},
			"map":{"type":"object","additionalProperties":{"type":"boolean"}},
			"free":{"type":"object","additionalProperties":true}
		}}}}`)
	return info
}

func TestOpenAPIV2_LeavesOutWhatOlderClientsCannotRead(t *testing.T) {
	for _, tc := range []struct{ given, want string }{
		{`{"type":"string","pattern":"^a$","x-more":[1]}`, `{"type":"string","pattern":"^a$","x-more":[1]}`},
		{`{"type":"integer","anyOf":[{"minimum":1}],"oneOf":[],"allOf":[{"maximum":2}],"not":{"enum":[3]},"maximum":9007199254740993}`, `{"type":"integer","maximum":9007199254740993}`},
		{`{"type":"string","nullable":true,"maxLength":3}`, `{"maxLength":3}`},
		{`{"type":"object","nullable":true,"properties":{"a":{"type":"string"}}}`, `{}`},
		{`{"type":"object","nullable":false,"properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{`{"type":"array","nullable":true,"items":{"type":"string"}}`, `{}`},
		{`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}}`, `{"x-kubernetes-preserve-unknown-fields":true}`},
		{`{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"string"}}`, `{"x-kubernetes-preserve-unknown-fields":true}`},
		{`{"type":"array"}`, `{}`},
		{`{"type":"array","items":[{"type":"string"}]}`, `{}`},
		{`{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{"x-kubernetes-int-or-string":true}`},
		{`{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"string"}}}`, `{"type":"object","required":["b"],"properties":{"a":{},"b":{"type":"string"}}}`},
		{`{"type":"object","required":["a"],"properties":{"a":{"nullable":true}}}`, `{"type":"object","properties":{"a":{}}}`},
		{`{"type":"object","required":["a"],"additionalProperties":{"type":"string","nullable":true}}`, `{"type":"object","additionalProperties":{}}`},
		{`{"type":["string","null"],"title":1,"minLength":0.5,"maxLength":"3","maximum":"x","minimum":1e999,"required":"a","enum":{},"items":true,"additionalProperties":[],"uniqueItems":0}`, `{}`},
		{`{"type":"null"}`, `{}`},
		{`true`, `{}`},
		{`{"$ref":"#/components/schemas/com.example.v1.WidgetList","type":"object"}`, `{"$ref":"#/definitions/com.example.v1.WidgetList"}`},
		{`{"$ref":"#/components/schemas/none","description":"Gone."}`, `{"description":"Gone."}`},
	} {
		widgets := widgetOf(`"properties":{"spec":` + tc.given + `}`)
		got, err := json.Marshal(definitions(t, widgets)["com.example.v1.Widget"]["properties"].(map[string]any)["spec"])
		require.NoError(t, err)
		require.JSONEq(t, strings.ReplaceAll(tc.want, "9007199254740993", "9007199254740992"), string(got), tc.given)
		_, err = openapi.NewOpenAPIData(parse(t, widgets))
		require.NoError(t, err, tc.given)
	}
	require.Contains(t, string(catalog.New([]*registry.Info{widgetOf(`"properties":{"spec":{"maximum":9007199254740993}}`)}, version).V2JSON().Body), "9007199254740993", "large integers are not rounded")
}

// kubectl refuses fields beside those that are described.
func TestOpenAPIV2_AnObjectThatMayHaveAnyFieldsIsNotDescribed(t *testing.T) {
	gvk := []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Widget"}}
	for _, words := range []string{`"x-kubernetes-preserve-unknown-fields":true`, `"description":"Any.","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object"}}`} {
		require.Equal(t, map[string]any{"type": "object", "x-kubernetes-group-version-kind": gvk}, definitions(t, widgetOf(words))["com.example.v1.Widget"])
	}
	odd := widgetOf("")
	odd.Schema = json.RawMessage(`true`)
	require.Equal(t, map[string]any{"type": "object", "x-kubernetes-group-version-kind": gvk}, definitions(t, odd)["com.example.v1.Widget"], "a schema that is not an object")
}

func TestOpenAPIV2_MetadataRefersToOneSchema(t *testing.T) {
	all := definitions(t, append(resources(), widgetEverything())...)
	const meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
	of := func(name string) any {
		return all[name]["properties"].(map[string]any)["metadata"].(map[string]any)["$ref"]
	}
	require.Equal(t, "#/definitions/"+meta+"ObjectMeta", of("com.example.v1.Widget"))
	require.Equal(t, "#/definitions/"+meta+"ObjectMeta", of("autoscaling.v1.Scale"))
	require.Equal(t, "#/definitions/"+meta+"ListMeta", of("com.example.v1.WidgetList"))
	owners := all[meta+"ObjectMeta"]["properties"].(map[string]any)["ownerReferences"].(map[string]any)
	require.Equal(t, "uid", owners["x-kubernetes-patch-merge-key"], "or clients' strategic merge patches replace them")
	require.Contains(t, all[meta+"ListMeta"]["properties"], "continue")
}

func TestOpenAPIV2_EmbeddedResourcesHaveTheFieldsOfAll(t *testing.T) {
	spec := func(words string) map[string]any {
		all := definitions(t, widgetOf(`"properties":{"spec":{"type":"object","x-kubernetes-embedded-resource":true`+words+`}}`))
		return all["com.example.v1.Widget"]["properties"].(map[string]any)["spec"].(map[string]any)
	}
	closed := spec(`,"required":["kind"],"properties":{"data":{"type":"string"}}`)
	require.Equal(t, []any{"kind", "apiVersion"}, closed["required"])
	fields := closed["properties"].(map[string]any)
	require.Len(t, fields, 4)
	require.Contains(t, fields["metadata"], "$ref")
	require.NotContains(t, spec(`,"x-kubernetes-preserve-unknown-fields":true`), "properties")
	require.Len(t, spec("")["properties"], 3)
}

// A client that may define kinds could otherwise make every other one's request take long.
func TestOpenAPIV2_WhatIsDeepInASchemaIsNotCopiedAtEachLevel(t *testing.T) {
	const depth, size = 1000, 100_000
	deep := resource("example.com", "v1", "Widget", "")
	deep.Schema = json.RawMessage(strings.Repeat(`{"properties":{"a":`, depth) + `{"description":"` + strings.Repeat("x", size) + `"}` + strings.Repeat("}}", depth))
	c := catalog.New([]*registry.Info{deep}, version)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Greater(t, len(c.V2Protobuf().Body), size)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(depth*size/4))
}

// Whatever the schemas that clients define have in them, all kinds can be looked up.
func TestProperty_AnySchemaMakesADocumentOfV2ThatClientsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(drawSchema(t, 3))
		require.NoError(t, err)
		widgets := resource("example.com", "v1", "Widget", "")
		widgets.Schema = text
		doc := parse(t, widgets, resource("example.com", "v1", "Zone", ""))
		models, err := openapi.NewOpenAPIData(doc)
		require.NoError(t, err, "%s", text)
		require.NotNil(t, models.LookupModel("com.example.v1.Zone"))
	})
}

// drawSchema draws a schema, with some words that are none or whose values are wrong.
func drawSchema(t *rapid.T, depth int) any {
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		return drawValue(t)
	}
	schema := map[string]any{}
	for _, word := range rapid.SliceOfN(rapid.SampledFrom(wordsOfSchemas), 0, 6).Draw(t, "words") {
		switch {
		case rapid.IntRange(0, 9).Draw(t, "wrong") == 0:
			schema[word] = drawValue(t)
		case slices.Contains([]string{"items", "not", "additionalProperties"}, word) && depth > 0:
			schema[word] = drawSchema(t, depth-1)
		case word == "properties" && depth > 0:
			fields := map[string]any{}
			for i := range rapid.IntRange(0, 3).Draw(t, "fields") {
				fields[fmt.Sprint("f", i)] = drawSchema(t, depth-1)
			}
			schema[word] = fields
		case slices.Contains([]string{"allOf", "anyOf", "oneOf"}, word) && depth > 0:
			schema[word] = []any{drawSchema(t, depth-1)}
		case word == "type":
			schema[word] = rapid.SampledFrom([]any{"object", "object", "array", "string", "integer", "number", "boolean", "null", "any"}).Draw(t, "type")
		case word == "$ref":
			schema[word] = rapid.SampledFrom([]any{"#/components/schemas/com.example.v1.Zone", "#/components/schemas/none", "#", ""}).Draw(t, "ref")
		case word == "required":
			schema[word] = rapid.SampledFrom([]any{[]any{}, []any{"f0"}, []any{"f1", 7, "f0"}}).Draw(t, "required")
		case strings.HasPrefix(word, "x-") || word == "nullable":
			schema[word] = rapid.Bool().Draw(t, "flag")
		default:
			schema[word] = drawValue(t)
		}
	}
	return schema
}

var wordsOfSchemas = []string{
	"type", "type", "type", "properties", "properties", "items", "items", "additionalProperties", "required", "nullable", "$ref", "allOf", "anyOf", "oneOf", "not",
	"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-other",
	"title", "description", "format", "pattern", "default", "example", "enum", "maximum", "minimum", "exclusiveMinimum", "multipleOf", "maxLength", "minItems", "maxProperties", "uniqueItems", "readOnly", "deprecated",
}

// drawValue draws a value of JSON.
func drawValue(t *rapid.T) any {
	return rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), toAny[bool]), rapid.Map(rapid.Int(), toAny[int]), rapid.Map(rapid.Float64Range(-1e6, 1e6), toAny[float64]),
		rapid.Map(rapid.StringMatching(`[ -~]{0,8}`), toAny[string]), rapid.Just[any]([]any{1, "a", nil}), rapid.Just[any](map[string]any{"a": []any{true}}),
	).Draw(t, "value")
}

func toAny[T any](v T) any { return v }
