package apiextensions_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/serve/apiextensions"
)

// ofNames edits the names of a spec.
func ofNames(names map[string]any) func(map[string]any) {
	return func(spec map[string]any) {
		maps.Copy(spec["names"].(map[string]any), names)
	}
}

// schemaOf gives the version a schema, in JSON.
func schemaOf(text string) func(map[string]any) {
	return ofVersion(func(v map[string]any) {
		var schema any
		if err := json.Unmarshal([]byte(text), &schema); err != nil {
			panic(text)
		}
		v["schema"] = map[string]any{"openAPIV3Schema": schema}
	})
}

// property gives the version a schema with a field a of that schema, in JSON.
func property(text string) func(map[string]any) {
	return schemaOf(`{"type":"object","properties":{"a":` + text + `}}`)
}

// inField is the path of the field a of the schema of the version.
const inField = "spec.versions[0].schema.openAPIV3Schema.properties[a]"

// withStatus gives the version the status subresource.
var withStatus = ofVersion(func(v map[string]any) { v["subresources"] = map[string]any{"status": map[string]any{}} })

// Such definitions could be served, and would be refused by every cluster.
func TestDefinitions_AreRefusedAsInAClusterFor(t *testing.T) {
	type edits = []func(map[string]any)
	set := func(name string, value any) func(map[string]any) {
		return ofVersion(func(v map[string]any) { v[name] = value })
	}
	webhook := func(webhook map[string]any) func(map[string]any) {
		return func(spec map[string]any) {
			spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": webhook}
		}
	}
	const root = "spec.versions[0].schema.openAPIV3Schema"
	for what, test := range map[string]struct {
		edits edits
		field string
	}{
		"unknown fields that are kept":     {edits{func(spec map[string]any) { spec["preserveUnknownFields"] = true }}, "spec.preserveUnknownFields"},
		"a kind of lists that has a blank": {edits{ofNames(map[string]any{"listKind": "Widget List"})}, "spec.names.listKind"},
		"one kind of objects and lists":    {edits{ofNames(map[string]any{"listKind": "Widget"})}, "spec.names.listKind"},
		"a category in upper case":         {edits{ofNames(map[string]any{"categories": []any{"all", "ALL"}})}, "spec.names.categories[1]"},
		"a conversion of another strategy": {edits{func(spec map[string]any) { spec["conversion"] = map[string]any{"strategy": "Guess"} }}, "spec.conversion.strategy"},
		"a webhook without use": {edits{func(spec map[string]any) {
			spec["conversion"] = map[string]any{"strategy": "None", "webhook": map[string]any{"clientConfig": map[string]any{}}}
		}}, "spec.conversion.webhook"},
		"a webhook without an address":           {edits{webhook(map[string]any{"conversionReviewVersions": []any{"v1"}})}, "spec.conversion.webhook.clientConfig"},
		"a webhook without versions":             {edits{webhook(map[string]any{"clientConfig": map[string]any{"url": "https://example.com"}})}, "spec.conversion.webhook.conversionReviewVersions"},
		"a warning of a version that is not old": {edits{set("deprecationWarning", "old")}, "spec.versions[0].deprecationWarning"},
		"an empty warning":                       {edits{set("deprecated", true), set("deprecationWarning", "")}, "spec.versions[0].deprecationWarning"},
		"a warning of two lines":                 {edits{set("deprecated", true), set("deprecationWarning", "a\nb")}, "spec.versions[0].deprecationWarning"},
		"a long warning":                         {edits{set("deprecated", true), set("deprecationWarning", strings.Repeat("a", 257))}, "spec.versions[0].deprecationWarning"},
		"a version without a schema": {edits{addVersion, func(spec map[string]any) {
			v := spec["versions"].([]any)[1].(map[string]any)
			delete(v, "schema")
			v["served"] = false
		}}, "spec.versions.schema.openAPIV3Schema"},
		"a column whose path begins with a dollar": {edits{set("additionalPrinterColumns", []any{map[string]any{"name": "A", "type": "string", "jsonPath": "$.a"}})}, "spec.versions[0].additionalPrinterColumns[0].jsonPath"},
		"a column of a format that there is not":   {edits{set("additionalPrinterColumns", []any{map[string]any{"name": "A", "type": "string", "format": "uuid", "jsonPath": ".a"}})}, "spec.versions[0].additionalPrinterColumns[0].format"},
		"a selector of what is not in the schema":  {edits{set("selectableFields", []any{map[string]any{"jsonPath": ".spec.shape"}})}, "spec.versions[0].selectableFields[0].jsonPath"},
		"a selector of an object":                  {edits{set("selectableFields", []any{map[string]any{"jsonPath": ".spec"}})}, "spec.versions[0].selectableFields[0].jsonPath"},
		"a selector with a sign of equality": {edits{
			schemaOf(`{"type":"object","properties":{"a=b":{"type":"string"}}}`), set("selectableFields", []any{map[string]any{"jsonPath": ".a=b"}}),
		}, "spec.versions.selectableFields"},
		"a selector that is there twice": {edits{set("selectableFields", []any{map[string]any{"jsonPath": ".spec.color"}, map[string]any{"jsonPath": ".spec.color"}})}, "spec.versions[0].selectableFields[1].jsonPath"},

		"a root that may be null":            {edits{schemaOf(`{"type":"object","nullable":true}`)}, root + ".nullable"},
		"a root with a default":              {edits{schemaOf(`{"type":"object","default":{}}`)}, root + ".default"},
		"a root with any further fields":     {edits{schemaOf(`{"type":"object","additionalProperties":true}`)}, root + ".additionalProperties"},
		"a rule of all beside the status":    {edits{withStatus, schemaOf(`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]}]}`)}, root},
		"a rule of the labels":               {edits{schemaOf(`{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}`)}, root + ".properties[metadata]"},
		"a rule of all the metadata":         {edits{schemaOf(`{"type":"object","properties":{"metadata":{"type":"object","required":["name"]}}}`)}, root + ".properties[metadata]"},
		"metadata that is a text":            {edits{schemaOf(`{"type":"object","properties":{"metadata":{"type":"string"}}}`)}, root + ".properties[metadata].type"},
		"a kind that is a number":            {edits{schemaOf(`{"type":"object","properties":{"kind":{"type":"integer"}}}`)}, root + ".properties[kind].type"},
		"a default of a name":                {edits{schemaOf(`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"a"}}}}}`)}, root + ".properties[metadata].properties[name].default"},
		"items that differ":                  {edits{property(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`)}, inField + ".uniqueItems"},
		"a schema of another dialect":        {edits{property(`{"type":"object","$schema":"a"}`)}, inField + ".$schema"},
		"a keyword that is not supported":    {edits{property(`{"type":"object","patternProperties":{"^x":{"type":"string"}}}`)}, inField + ".patternProperties"},
		"unknown fields that are not kept":   {edits{property(`{"type":"object","x-kubernetes-preserve-unknown-fields":false}`)}, inField + ".x-kubernetes-preserve-unknown-fields"},
		"known and further fields":           {edits{property(`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":{"type":"string"}}`)}, inField + ".additionalProperties"},
		"known and no further fields":        {edits{property(`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}`)}, inField + ".additionalProperties"},
		"another type of map":                {edits{property(`{"type":"object","x-kubernetes-map-type":"set"}`)}, inField + ".x-kubernetes-map-type"},
		"a type of map of a text":            {edits{property(`{"type":"string","x-kubernetes-map-type":"atomic"}`)}, inField + ".type"},
		"a type of list of a text":           {edits{property(`{"type":"string","x-kubernetes-list-type":"atomic"}`)}, inField + ".type"},
		"a list without items":               {edits{property(`{"type":"array"}`)}, inField + ".items"},
		"a set that may have null":           {edits{property(`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","nullable":true}}`)}, inField + ".items.nullable"},
		"a set of objects":                   {edits{property(`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}`)}, inField + ".items.x-kubernetes-map-type"},
		"a set of sets":                      {edits{property(`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}`)}, inField + ".items.x-kubernetes-list-type"},
		"a map of texts":                     {edits{property(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"string"}}`)}, inField + ".items.type"},
		"a map by a key that is not there":   {edits{property(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object"}}`)}, inField + ".x-kubernetes-list-map-keys"},
		"a map by one key twice":             {edits{property(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}`)}, inField + ".x-kubernetes-list-map-keys"},
		"a map by a key that is an object":   {edits{property(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"object"}}}}`)}, inField + ".items.properties[k].type"},
		"a map by a key that may be missing": {edits{property(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"}}}}`)}, inField + ".items.properties[k].default"},
		"a map by a key that may be null":    {edits{property(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","nullable":true}}}}`)}, inField + ".items.properties[k].nullable"},
		"any value that may be either":       {edits{property(`{"x-kubernetes-int-or-string":true,"x-kubernetes-preserve-unknown-fields":true}`)}, inField + ".x-kubernetes-preserve-unknown-fields"},
		"a resource that may be a number":    {edits{property(`{"type":"object","x-kubernetes-int-or-string":true,"x-kubernetes-embedded-resource":true,"properties":{"b":{"type":"string"}}}`)}, inField + ".x-kubernetes-embedded-resource"},
		"a resource without fields":          {edits{property(`{"type":"object","x-kubernetes-embedded-resource":true}`)}, inField + ".properties"},
		"a resource with further fields":     {edits{property(`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"additionalProperties":true}`)}, inField + ".additionalProperties"},
		"a resource whose kind is a number":  {edits{property(`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{"type":"integer"}}}`)}, inField + ".properties[kind].type"},
		"a default with an unknown field":    {edits{property(`{"type":"object","default":{"b":[{"c":1}]},"properties":{"b":{"type":"array","items":{"type":"object","properties":{"d":{"type":"string"}}}}}}`)}, inField + ".default"},
		"a rule without an expression":       {edits{property(`{"type":"string","x-kubernetes-validations":[{"rule":" "}]}`)}, inField + ".x-kubernetes-validations[0].rule"},

		"a type below anyOf":               {edits{property(`{"type":"string","anyOf":[{"type":"string"}]}`)}, inField + ".anyOf[0].type"},
		"a description below oneOf":        {edits{property(`{"type":"string","oneOf":[{"description":"It is."}]}`)}, inField + ".oneOf[0].description"},
		"a default below not":              {edits{property(`{"type":"string","not":{"default":"a"}}`)}, inField + ".not.default"},
		"a junctor below a junctor":        {edits{property(`{"type":"string","allOf":[{"not":{"nullable":true}}]}`)}, inField + ".allOf[0].not.nullable"},
		"a field that is only below anyOf": {edits{schemaOf(`{"type":"object","anyOf":[{"properties":{"b":{"minimum":1}}}]}`)}, root + ".properties[b]"},
		"a field of a field below anyOf":   {edits{schemaOf(`{"type":"object","properties":{"b":{"type":"object"}},"anyOf":[{"not":{"properties":{"b":{"properties":{"c":{"minimum":1}}}}}}]}`)}, root + ".properties[b].properties[c]"},
		"items that are only below not":    {edits{schemaOf(`{"type":"object","properties":{"b":{"type":"object"}},"not":{"properties":{"b":{"items":{"minimum":1}}}}}`)}, root + ".properties[b].items"},
		"a pattern below anyOf":            {edits{property(`{"type":"string","anyOf":[{"pattern":"["}]}`)}, inField + ".anyOf[0].pattern"},
		"types in the second of allOf":     {edits{property(`{"x-kubernetes-int-or-string":true,"allOf":[{"pattern":"^a"},{"anyOf":[{"type":"integer"}]}]}`)}, inField + ".allOf[1].anyOf[0].type"},
		"types below the first of allOf":   {edits{property(`{"x-kubernetes-int-or-string":true,"allOf":[{"allOf":[{"anyOf":[{"type":"integer"}]}]}]}`)}, inField + ".allOf[0].allOf[0].anyOf[0].type"},
		"a type of a field below anyOf":    {edits{property(`{"type":"object","properties":{"b":{"type":"integer"}},"anyOf":[{"properties":{"b":{"type":"integer"}}}]}`)}, inField + ".anyOf[0].properties[b].type"},
		"a type of items below anyOf":      {edits{property(`{"type":"array","items":{"type":"integer"},"anyOf":[{"items":{"type":"integer"}}]}`)}, inField + ".anyOf[0].items.type"},
		"metadata below anyOf":             {edits{schemaOf(`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"properties":{"metadata":{"required":["name"]}}}]}`)}, root + ".anyOf[0].properties[metadata]"},
		"unique items below anyOf":         {edits{property(`{"type":"array","items":{"type":"string"},"anyOf":[{"uniqueItems":true}]}`)}, inField + ".anyOf[0].uniqueItems"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, apiextensions.Config{})
				a := c.must(422, "POST", definitionsPath, definition("widgets", "Widget", test.edits...))
				require.Contains(t, a.Body.String(), `"field":"`+test.field+`"`)
				require.Contains(t, a.Body.String(), `"causes":[{`)
				require.NotContains(t, a.Body.String(), `},{`, "nothing else is wrong")
			})
		})
	}
}

// What is not a rule of a cluster is not refused.
func TestDefinitions_AreTakenAsInAClusterWith(t *testing.T) {
	for what, edit := range map[string]func(map[string]any){
		"rules of the name":                        schemaOf(`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":9},"generateName":{"type":"string"}}}}}`),
		"a rule of the metadata that says nothing": schemaOf(`{"type":"object","properties":{"metadata":{"type":"object","nullable":false}}}`),
		"a default of a list that keeps all":       property(`{"type":"array","default":[{"b":1}],"x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object"}}`),
		"an integer or a text":                     property(`{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`),
		"both, and more":                           property(`{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"pattern":"^a"}]}`),
		"a map by a key and default":               property(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string","default":"a"}}}}`),
		"defaults of known fields": property(`{"type":"object","default":{"b":[{"c":{"d":1}}],"e":{"f":{"g":1}},"h":{"i":1},"j":{"kind":"K","apiVersion":"v1"}},"properties":{
			"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}},"e":{"type":"object","additionalProperties":{"type":"object","additionalProperties":true}},
			"h":{"type":"object","additionalProperties":{"type":"integer"}},"j":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}}`),
		"a set of atoms":        property(`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic"}}`),
		"any further fields":    property(`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":true}`),
		"rules of known fields": property(`{"type":"object","properties":{"b":{"type":"array","items":{"type":"integer"}}},"oneOf":[{"properties":{"b":{"items":{"minimum":1}}}},{"required":["b"]}]}`),
		"a webhook": func(spec map[string]any) {
			spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig": map[string]any{"url": "https://example.com"}, "conversionReviewVersions": []any{"v1beta1"},
			}}
		},
		"a warning": ofVersion(func(v map[string]any) { v["deprecated"], v["deprecationWarning"] = true, "Use another." }),
		"a column of a path that is not understood": ofVersion(func(v map[string]any) {
			v["additionalPrinterColumns"] = []any{map[string]any{"name": "A", "type": "string", "jsonPath": "..a"}}
		}),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				newCluster(t, apiextensions.Config{}).define(definition("widgets", "Widget", edit))
			})
		})
	}
}

// inGroup returns a definition of widgets in another group, with an annotation.
func inGroup(t *testing.T, group, annotation, value string) string {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON([]byte(strings.ReplaceAll(definition("widgets", "Widget"), "example.com", group))))
	o.SetAnnotations(map[string]string{annotation: value})
	text, err := o.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

func TestDefinitions_OfAGroupWithoutADotAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCluster(t, apiextensions.Config{}).must(422, "POST", definitionsPath, inGroup(t, "example", "a", "b"))
		require.Contains(t, a.Body.String(), `"field":"spec.group"`)
	})
}

// A group of Kubernetes' own needs the approval of its maintainers, or says that it has none.
func TestDefinitions_OfKubernetesGroupsNeedApproval(t *testing.T) {
	for value, code := range map[string]int{"": 422, "yes": 422, "https://example.com/1": 201, "unapproved, a test": 201} {
		for _, group := range []string{"example.k8s.io", "example.kubernetes.io"} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, apiextensions.Config{})
				c.must(code, "POST", definitionsPath, inGroup(t, group, "api-approved.kubernetes.io", value))
			})
		}
	}
}

// A keyword that is misspelled has no effect, so its writer is told.
func TestDefinitions_UnknownKeywordsOfSchemasArePruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		text := definition("widgets", "Widget", schemaOf(`{"type":"object","propertys":{},"properties":{
			"example":{"type":"string","maxLenght":5,"default":"a","enum":["a",{"b":1}],"example":{"c":1},"anyOf":[{"patern":"a"}]},
			"list":{"type":"array","items":{"type":"object","additionalProperties":{"type":"string","x-mine":true}}}}}`))
		const at = "spec.versions[0].schema.openAPIV3Schema."
		paths := []string{at + "propertys", at + "properties.example.maxLenght", at + "properties.example.anyOf[0].patern", at + "properties.list.items.additionalProperties.x-mine"}
		strict := c.must(400, "POST", definitionsPath+"?fieldValidation=Strict", text)
		taken := c.must(201, "POST", definitionsPath, text)
		for _, path := range paths {
			require.Contains(t, strict.Body.String(), path)
			require.Contains(t, strings.Join(taken.Header().Values("Warning"), "\n"), path)
		}
		body := taken.Body.String()
		for _, keyword := range []string{"propertys", "maxLenght", "patern", "x-mine"} {
			require.NotContains(t, body, keyword)
		}
		for _, kept := range []string{`"enum":["a",{"b":1}]`, `"example":{"c":1}`, `"default":"a"`} {
			require.Contains(t, body, kept)
		}
	})
}

// The paths of what is wrong in a schema have the names of the fields around it, which may have kilobytes.
// A definition has room for a hundred thousand errors.
func TestDefinitions_OfLongNamesCostLittle(t *testing.T) {
	within := func(schema func(i int) string) func(map[string]any) {
		var all strings.Builder
		for i := range 8000 {
			fmt.Fprintf(&all, `,"a%d":%s`, i, schema(i))
		}
		return schemaOf(`{"type":"object","properties":{"` + strings.Repeat("long", 3<<10) + `":{"type":"object","properties":{"b":{"type":"string"}` + all.String() + `}}}}`)
	}
	for what, test := range map[string]struct {
		code   int
		schema func(i int) string
	}{
		"nothing wrong":    {201, func(int) string { return `{"type":"string"}` }},
		"unknown keywords": {201, func(i int) string { return fmt.Sprintf(`{"type":"string","x%d":1}`, i) }},
		"errors":           {422, func(int) string { return `{"type":"array","items":{"type":"string"},"uniqueItems":true}` }},
		"errors below":     {422, func(int) string { return `{"type":"string","not":{"nullable":true}}` }},
		"errors in maps": {422, func(i int) string {
			return fmt.Sprintf(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k%d"],"items":{"type":"object"}}`, i)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, apiextensions.Config{})
				text := definition("widgets", "Widget", within(test.schema))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				a := c.must(test.code, "POST", definitionsPath, text)
				runtime.ReadMemStats(&after)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(400<<20))
				require.Less(t, len(strings.Join(a.Header().Values("Warning"), "")), 100<<10)
				if test.code == 422 {
					require.Less(t, a.Body.Len(), 200<<10)
				}
			})
		})
	}
}

// A definition that is older than a rule can be changed, but not to break another one.
func TestChange_OfADefinitionThatIsOlderThanARule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		old := property(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`)
		storage.createUnchecked(t, definition("widgets", "Widget", old))
		c := newCluster(t, storage.config())
		c.await(widgetsName, "Established=True")
		first := func(spec map[string]any) { // which changes the place of the other
			addVersion(spec)
			all := spec["versions"].([]any)
			all[0], all[1] = all[1], all[0]
		}
		c.update(200, definition("widgets", "Widget", old, first))
		a := c.update(422, definition("widgets", "Widget", old, ofNames(map[string]any{"categories": []any{"ALL"}})))
		require.NotContains(t, a.Body.String(), "uniqueItems")
		c.update(200, definition("widgets", "Widget"))
		require.Contains(t, c.update(422, definition("widgets", "Widget", old)).Body.String(), "uniqueItems")
	})
}

// However much an older definition has that is refused today, what a change adds to that is found, and what
// it leaves is not.
func TestChange_OfADefinitionThatBreaksARuleInManyPlaces(t *testing.T) {
	const list = `{"type":"array","items":{"type":"string"}}`
	refused := strings.Replace(list, `"array"`, `"array","uniqueItems":true`, 1)
	const most = 1500
	from := func(first int, last string) func(map[string]any) {
		var all strings.Builder
		for i := first; i < most; i++ {
			fmt.Fprintf(&all, `"a%04d":%s,`, i, refused)
		}
		return schemaOf(`{"type":"object","properties":{` + all.String() + `"last":` + last + `}}`)
	}
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		storage.createUnchecked(t, definition("widgets", "Widget", from(0, list)))
		c := newCluster(t, storage.config())
		c.await(widgetsName, "Established=True")
		a := c.update(422, definition("widgets", "Widget", from(0, refused)))
		require.Contains(t, a.Body.String(), "properties[last].uniqueItems")
		require.NotContains(t, a.Body.String(), "[a0")
		c.update(200, definition("widgets", "Widget", from(600, list)))
		c.update(200, definition("widgets", "Widget", from(most-1, list)))
		require.Contains(t, c.update(422, definition("widgets", "Widget", from(most-2, list))).Body.String(), fmt.Sprint("a", most-2))
	})
}

// As in a cluster: objects may be stored in a version that was stored before.
func TestChange_VersionsThatWereStoredStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		created := c.must(201, "POST", definitionsPath, definition("widgets", "Widget")).object()
		stored, _, _ := unstructured.NestedStringSlice(created.Object, "status", "storedVersions")
		require.Equal(t, []string{"v1"}, stored)
		c.await(widgetsName, "Established=True")
		onlyNew := definition("widgets", "Widget", ofVersion(func(v map[string]any) { v["name"] = "v1beta1" }))
		refused := c.update(422, onlyNew).Body.String()
		require.Contains(t, refused, `"field":"status.storedVersions[0]"`)
		require.Contains(t, refused, `status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; `) // by which programs know it
		c.update(200, definition("widgets", "Widget", addVersion, func(spec map[string]any) {
			old, next := spec["versions"].([]any)[0].(map[string]any), spec["versions"].([]any)[1].(map[string]any)
			old["served"], old["storage"], next["storage"] = false, false, true
		}))
		c.must(404, "GET", widgetsPath, "")
		require.Contains(t, c.update(422, onlyNew).Body.String(), `"field":"status.storedVersions[0]"`)
		c.must(200, "PATCH", definitionsPath+"/"+widgetsName+"/status", `{"status":{"storedVersions":["v1beta1"]}}`, "Content-Type", "application/merge-patch+json")
		c.update(200, onlyNew)
	})
}

// A version that was dropped before there was this rule is not asked for.
func TestChange_VersionsThatWereDroppedBeforeMayBeMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		c.must(200, "PATCH", definitionsPath+"/"+widgetsName+"/status", `{"status":{"storedVersions":["v0","v1"]}}`, "Content-Type", "application/merge-patch+json")
		c.update(200, definition("widgets", "Widget", addVersion))
	})
}

// The errors of a definition have one order: those of one field that in which they are found, and others that of
// their fields, which are in maps.
func TestDefinitions_TellTheirErrorsInOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		properties := `"apiVersion":{"type":"integer"},"kind":{"type":"integer"},"metadata":{"type":"string"}`
		var want []string
		for i := range 20 {
			name := fmt.Sprintf("a%02d", i)
			properties += fmt.Sprintf(`,%q:{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","l"]}`, name)
			for _, key := range []string{"k", "l"} {
				want = append(want, name+`].x-kubernetes-list-map-keys Invalid value: "`+key+`": must be a property of the items`)
			}
		}
		want = append(want, `apiVersion].type Invalid value: "integer": must be string`, `kind].type Invalid value: "integer": must be string`,
			`metadata].type Invalid value: "string": must be object`)
		text := definition("widgets", "Widget", schemaOf(`{"type":"object","properties":{`+properties+`}}`))
		for range 10 {
			causes, _, _ := unstructured.NestedSlice(c.must(422, "POST", definitionsPath, text).object().Object, "details", "causes")
			var got []string
			for _, cause := range causes {
				of := cause.(map[string]any)
				got = append(got, strings.TrimPrefix(of["field"].(string), "spec.versions[0].schema.openAPIV3Schema.properties[")+" "+of["message"].(string))
			}
			require.Equal(t, want, got)
		}
	})
}
