package apiextensions

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry/crd/cel"
	"github.com/watchmill/watchmill/serve"
	definitions "github.com/watchmill/watchmill/serve/apiextensions"
)

// newDefining starts a server of this module that clients define kinds on.
func newDefining(t *testing.T) *server {
	t.Helper()
	d, err := definitions.New(t.Context(), definitions.Config{Rules: cel.Rules{}, OnError: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{d}})
	require.NoError(t, err)
	require.NoError(t, d.Start(t.Context(), handler))
	h := httptest.NewServer(handler)
	t.Cleanup(h.Close)
	return &server{url: h.URL, client: h.Client(), said: map[string]string{}}
}

// gearDefinition defines a kind; each case changes a part of it.
const gearDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gears.example.org"},
	"spec":{"group":"example.org","scope":"Namespaced","names":{"plural":"gears","kind":"Gear"},
	"versions":[{"name":"v1","served":true,"storage":true,"subresources":{},"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

// edited is a change of a part of the definition.
type edited [2]string

// inSchema gives the objects a schema.
func inSchema(schema string) edited { return edited{`{"type":"object"}`, schema} }

// inField gives the field a of the objects a schema.
func inField(schema string) edited {
	return inSchema(`{"type":"object","properties":{"a":` + schema + `}}`)
}

// inVersion gives the version more.
func inVersion(more string) edited { return edited{`"subresources":{}`, more} }

// aMap is a list that is a map by the keys, with items of that schema.
func aMap(keys, item string) edited {
	return inField(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":` + keys + `,"items":` + item + `}`)
}

// besideVersion adds a version.
func besideVersion(version string) edited {
	return edited{`"versions":[`, `"versions":[` + version + `,`}
}

// edits are the definitions that are sent.
var edits = []edited{
	{}, {"example.org", "example"}, {"example.org", "example.k8s.io"}, {`"name":"gears.example.org"`, `"name":"gears.example.com"`}, {"Namespaced", "Everywhere"}, {`"Gear"`, `"gear!"`},
	{`"metadata":{"name":"gears.example.org"},
	"spec":{"group":"example.org"`, `"metadata":{"name":"gears.example.k8s.io","annotations":{"api-approved.kubernetes.io":"unapproved"}},"spec":{"group":"example.k8s.io"`},
	{`"metadata":{"name":"gears.example.org"},
	"spec":{"group":"example.org"`, `"metadata":{"name":"gears.example.k8s.io","annotations":{"api-approved.kubernetes.io":"no"}},"spec":{"group":"example.k8s.io"`},
	{`"kind":"Gear"`, `"kind":"Gear","listKind":"Gear"`}, {`"kind":"Gear"`, `"kind":"Gear","listKind":"Gear List"`}, {`"kind":"Gear"`, `"kind":"Gear","categories":["ALL"]`},
	{`"kind":"Gear"`, `"kind":"Gear","shortNames":["g"],"singular":"gear","categories":["all"],"listKind":"GearList"`}, {`"kind":"Gear"`, `"kind":"Gear","shortNames":["G"]`},
	{`"spec":{"group"`, `"status":{"observedGeneration":1,"conditions":[{"type":"Established","status":"True","observedGeneration":1}],"acceptedNames":{"plural":"gears","kind":"Gear"},"storedVersions":["v1"]},"spec":{"group"`},
	{`"scope"`, `"preserveUnknownFields":true,"scope"`}, {`"scope"`, `"preserveUnknownFields":false,"scope"`},
	{`"scope"`, `"conversion":{"strategy":"Guess"},"scope"`}, {`"scope"`, `"conversion":{"strategy":"None"},"scope"`}, {`"scope"`, `"conversion":{},"scope"`},
	{`"scope"`, `"conversion":{"strategy":"Webhook"},"scope"`}, {`"scope"`, `"conversion":{"strategy":"None","webhook":{"clientConfig":{"url":"https://example.org"},"conversionReviewVersions":["v1"]}},"scope"`},
	{`"scope"`, `"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://example.org"},"conversionReviewVersions":["v1"]}},"scope"`},
	{`"scope"`, `"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://example.org"}}},"scope"`},
	{`"scope"`, `"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"]}},"scope"`},
	{`"storage":true`, `"storage":false`}, {`"name":"v1"`, `"name":"V1"`}, {`{"openAPIV3Schema":{"type":"object"}}`, `{}`},
	{`"served":true`, `"served":false`}, {`"versions":[{"name":"v1","served":true`, `"versions":[{"name":"v0","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v1","served":false`},
	besideVersion(`{"name":"v0","served":false,"storage":false}`), besideVersion(`{"name":"v0","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}`),
	besideVersion(`{"name":"v1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}`), besideVersion(`{"name":"v0","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}`),
	besideVersion(`{"name":"v0","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{}}}}}`),
	inVersion(`"deprecationWarning":"a"`), inVersion(`"deprecated":true,"deprecationWarning":"a"`), inVersion(`"deprecated":true,"deprecationWarning":""`), inVersion(`"deprecated":true,"deprecationWarning":"a\nb"`),
	inVersion(`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a"}]`), inVersion(`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":"a"}]`),
	inVersion(`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":"$.a"}]`), inVersion(`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a["}]`),
	inVersion(`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a[-1:].b"}]`), inVersion(`"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":"..a"}]`),
	inVersion(`"additionalPrinterColumns":[{"name":"A","type":"text","jsonPath":".a"}]`), inVersion(`"additionalPrinterColumns":[{"name":"A","type":"string","format":"uuid","jsonPath":".a"}]`),
	inVersion(`"additionalPrinterColumns":[{"name":"","type":"string","jsonPath":".a"}]`), inVersion(`"additionalPrinterColumns":[{"name":"A","type":"string","format":"date","jsonPath":".a"}]`),
	inVersion(`"selectableFields":[{"jsonPath":".a"}]`), inVersion(`"selectableFields":[{"jsonPath":".metadata.name"}]`),
	inVersion(`"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a"}}`), inVersion(`"subresources":{"scale":{"specReplicasPath":".a","statusReplicasPath":".status.a"}}`),
	inVersion(`"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":".a"}}`), inVersion(`"subresources":{"scale":{"specReplicasPath":".spec.a"}}`),

	inSchema(`{}`), inSchema(`{"type":"array","items":{"type":"string"}}`), inSchema(`{"x-kubernetes-preserve-unknown-fields":true}`), inSchema(`{"type":"object","nullable":true}`),
	inSchema(`{"type":"object","additionalProperties":true}`), inSchema(`{"type":"object","additionalProperties":false}`), inSchema(`{"type":"object","default":{}}`), inSchema(`{"type":"object","minProperties":1}`),
	{`"subresources":{},"schema":{"openAPIV3Schema":{"type":"object"}}`, `"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","minProperties":1}}`},
	{`"subresources":{},"schema":{"openAPIV3Schema":{"type":"object"}}`, `"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{"spec":{"type":"object"}}}}`},
	{`"subresources":{},"schema":{"openAPIV3Schema":{"type":"object"}}`, `"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","anyOf":[{"required":["spec"]}],"properties":{"spec":{"type":"object"}}}}`},
	inSchema(`{"type":"object","properties":{"metadata":{"type":"object"}}}`), inSchema(`{"type":"object","properties":{"metadata":{"type":"string"}}}`), inSchema(`{"type":"object","properties":{"metadata":{"type":"object","description":"M."}}}`),
	inSchema(`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":5},"generateName":{"type":"string"}}}}}`),
	inSchema(`{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}`), inSchema(`{"type":"object","properties":{"metadata":{"type":"object","required":["name"]}}}`),
	inSchema(`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"a"}}}}}`), inSchema(`{"type":"object","properties":{"metadata":{"type":"object","default":{}}}}`),
	inSchema(`{"type":"object","properties":{"kind":{"type":"integer"}}}`), inSchema(`{"type":"object","properties":{"kind":{"type":"string"},"apiVersion":{"type":"string"}}}`), inSchema(`{"type":"object","properties":{"kind":{"type":"string","default":"a"}}}`),

	inField(`{}`), inField(`{"type":"null"}`), inField(`{"type":"text"}`), inField(`{"type":"string","nullable":true}`), inField(`{"type":"string","maxLenght":5}`), inField(`{"type":"string","x-mine":5}`),
	inField(`{"type":"string","pattern":"["}`), inField(`{"type":"string","pattern":"^a$"}`), inField(`{"type":"string","format":"mine"}`), inField(`{"type":"boolean","format":"mine","default":"yes"}`), inField(`{"type":"string","format":"mine","default":["a"]}`), inField(`{"type":"string","format":"mine","default":5}`), inField(`{"type":"string","enum":["a"]}`), inField(`{"type":"string","id":"a"}`), inField(`{"type":"string","$schema":"a"}`),
	inField(`{"type":"string","example":{"b":1}}`), inField(`{"type":"string","externalDocs":{"url":"a"}}`), inField(`{"$ref":"#/a"}`), inField(`{"type":"object","definitions":{"b":{"type":"string"}}}`), inField(`{"type":"object","dependencies":{"b":["c"]}}`),
	inField(`{"type":"object","patternProperties":{"b":{"type":"string"}}}`), inField(`{"type":"array","items":{"type":"string"},"additionalItems":true}`), inField(`{"type":"array","items":[{"type":"string"}]}`), inField(`{"type":"array"}`),
	inField(`{"type":"array","items":{}}`), inField(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`), inField(`{"type":"array","items":{"type":"string"},"uniqueItems":false}`),
	inField(`{"type":"object","x-kubernetes-preserve-unknown-fields":false}`), inField(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`),
	inField(`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":true}`), inField(`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}`),
	inField(`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":{"type":"string"}}`), inField(`{"type":"object","additionalProperties":false}`), inField(`{"type":"object","additionalProperties":{"type":"string"}}`),
	inField(`{"type":"object","additionalProperties":{}}`), inField(`{"type":"object","x-kubernetes-map-type":"set"}`), inField(`{"type":"object","x-kubernetes-map-type":"atomic"}`), inField(`{"type":"string","x-kubernetes-map-type":"atomic"}`),
	inField(`{"type":"string","x-kubernetes-list-type":"atomic"}`), inField(`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"bag"}`), inField(`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`),
	inField(`{"type":"array","items":{"type":"string","nullable":true},"x-kubernetes-list-type":"set"}`), inField(`{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"set"}`), inField(`{"type":"array","items":{"type":"object","x-kubernetes-map-type":"atomic"},"x-kubernetes-list-type":"set"}`),
	inField(`{"type":"array","items":{"type":"array","items":{"type":"string"}},"x-kubernetes-list-type":"set"}`), inField(`{"type":"array","items":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},"x-kubernetes-list-type":"set"}`),
	aMap(`[]`, `{"type":"object"}`), aMap(`["k"]`, `{"type":"string"}`), aMap(`["k"]`, `{"type":"object"}`), aMap(`["k"]`, `{"type":"object","properties":{"k":{"type":"string"}}}`), aMap(`["k"]`, `{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}`),
	aMap(`["k"]`, `{"type":"object","properties":{"k":{"type":"string","default":"a"}}}`), aMap(`["k","k"]`, `{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}`), aMap(`["k"]`, `{"type":"object","required":["k"],"properties":{"k":{"type":"object"}}}`),
	aMap(`["k"]`, `{"type":"object","required":["k"],"properties":{"k":{"type":"string","nullable":true}}}`), aMap(`["k"]`, `{"type":"object","nullable":true,"required":["k"],"properties":{"k":{"type":"string"}}}`),
	inField(`{"type":"array","items":{"type":"string"},"x-kubernetes-list-map-keys":["k"]}`),
	inField(`{"x-kubernetes-int-or-string":true}`), inField(`{"type":"string","x-kubernetes-int-or-string":true}`), inField(`{"x-kubernetes-int-or-string":true,"x-kubernetes-preserve-unknown-fields":true}`),
	inField(`{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`), inField(`{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"string"},{"type":"integer"}]}`),
	inField(`{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"pattern":"^a"}]}`), inField(`{"x-kubernetes-int-or-string":true,"allOf":[{"pattern":"^a"},{"anyOf":[{"type":"integer"},{"type":"string"}]}]}`),
	inField(`{"type":"object","anyOf":[{"type":"integer"},{"type":"string"}]}`),
	inField(`{"type":"object","x-kubernetes-embedded-resource":true}`), inField(`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`), inField(`{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`),
	inField(`{"type":"object","x-kubernetes-embedded-resource":true,"additionalProperties":true,"x-kubernetes-preserve-unknown-fields":true}`), inField(`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{"type":"integer"}}}`),
	inField(`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}`), inField(`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}`),
	inField(`{"type":"string","x-kubernetes-validations":[{"rule":" "}]}`), inField(`{"type":"string","x-kubernetes-validations":[{"rule":"self == 'a'"}]}`),

	inField(`{"type":"string","anyOf":[{"type":"string"}]}`), inField(`{"type":"string","anyOf":[{"minLength":1},{"pattern":"a"}]}`), inField(`{"type":"string","oneOf":[{"description":"It is."}]}`), inField(`{"type":"string","oneOf":[{"title":"It is."}]}`),
	inField(`{"type":"string","not":{"default":"a"}}`), inField(`{"type":"string","not":{"nullable":true}}`), inField(`{"type":"string","not":{"enum":["a"]}}`), inField(`{"type":"string","allOf":[{"not":{"type":"string"}}]}`),
	inField(`{"type":"object","allOf":[{"additionalProperties":true}]}`), inField(`{"type":"object","allOf":[{"x-kubernetes-preserve-unknown-fields":true}]}`), inField(`{"type":"object","allOf":[{"x-kubernetes-map-type":"atomic"}]}`),
	inField(`{"type":"object","anyOf":[{"properties":{"b":{"minimum":1}}}]}`), inField(`{"type":"object","properties":{"b":{"type":"integer"}},"anyOf":[{"properties":{"b":{"minimum":1}}}]}`), inField(`{"type":"object","properties":{"b":{"type":"integer"}},"anyOf":[{"properties":{"b":{"type":"integer"}}}]}`),
	inField(`{"type":"object","anyOf":[{"required":["b"]}]}`), inField(`{"type":"object","not":{"items":{"minimum":1}}}`), inField(`{"type":"array","items":{"type":"integer"},"not":{"items":{"minimum":1}}}`), inField(`{"type":"object","additionalProperties":{"type":"integer"},"anyOf":[{"properties":{"b":{"minimum":1}}}]}`),
	inSchema(`{"type":"object","anyOf":[{"properties":{"b":{"minimum":1}}}]}`), inSchema(`{"type":"object","properties":{"b":{"type":"object"}},"anyOf":[{"not":{"properties":{"b":{"properties":{"c":{"minimum":1}}}}}}]}`),
	inSchema(`{"type":"object","properties":{"b":{"type":"object"}},"not":{"properties":{"b":{"items":{"minimum":1}}}}}`), inSchema(`{"type":"object","properties":{"b":{"type":"integer"}},"not":{"properties":{"b":{"minimum":1}}}}`),
	inField(`{"x-kubernetes-int-or-string":true,"allOf":[{"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]}]}]}`), inField(`{"type":"string","anyOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]}]}`),
	inField(`{"type":"string","anyOf":[{"x-kubernetes-validations":[{"rule":"true"}]}]}`), inField(`{"type":"string","anyOf":[{"pattern":"["}]}`), inField(`{"type":"array","items":{"type":"string"},"anyOf":[{"uniqueItems":true}]}`),
	inSchema(`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"properties":{"metadata":{"required":["name"]}}}]}`),
	inField(`{"type":"string","default":5}`), inField(`{"type":"string","default":"a"}`), inField(`{"type":"object","default":{"b":1}}`), inField(`{"type":"object","default":{"b":1},"properties":{"b":{"type":"integer"}}}`), inField(`{"type":"string","default":null}`),
	inField(`{"type":"string","nullable":true,"default":null}`), inField(`{"type":"integer","minimum":5,"default":1}`),
	inField(`{"type":"object","default":{},"required":["b"],"properties":{"b":{"type":"integer","default":1}}}`), inField(`{"type":"object","default":{"b":1},"required":["b"],"properties":{"b":{"type":"integer","default":1}}}`),
	inField(`{"type":"object","default":{},"not":{"required":["b"]},"properties":{"b":{"type":"integer","default":1}}}`), inField(`{"type":"array","default":[{}],"items":{"type":"object","required":["b"],"properties":{"b":{"type":"integer","default":1}}}}`),
	inField(`{"type":"array","items":{"type":"integer","default":"b"}}`), inField(`{"type":"object","additionalProperties":{"type":"integer","default":"b"}}`), inField(`{"type":"object","additionalProperties":{"type":"object","properties":{"b":{"type":"integer","default":"c"}}}}`),
	inField(`{"type":"object","additionalProperties":{"type":"object","default":{"b":1}}}`),
}

// Whatever a definition has, it is taken here if a cluster takes it, and refused if that refuses it.
func TestDefinitions_AreTakenOrRefusedAsByKubernetes(t *testing.T) {
	t.Parallel()
	both := &pair{original: newOriginal(t), ours: newDefining(t)}
	for _, edit := range edits {
		text := strings.Replace(gearDefinition, edit[0], edit[1], 1)
		if edit[0] == "example.org" { // in the name and in the group
			text = strings.ReplaceAll(gearDefinition, edit[0], edit[1])
		}
		r := send(http.MethodPost, definitionsPath+"?dryRun=All&fieldValidation=Strict", "", text)
		original, err := both.original.ask(t.Context(), r)
		require.NoError(t, err)
		ours, err := both.ours.ask(t.Context(), r)
		require.NoError(t, err)
		if original.code != ours.code {
			t.Errorf("%s\nKubernetes: %d %s\nours: %d %s", edit[1], original.code, original.text, ours.code, ours.text)
		}
	}
}

// The time of creation is the one cell that differs.
func TestDefinitions_AreShownInTablesAsByKubernetes(t *testing.T) {
	t.Parallel()
	p := &pair{original: newOriginal(t), ours: newDefining(t)}
	table := func(s *server, r request) any {
		a, err := s.ask(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.code, a.text)
		shown := general(a.values[0], "").(map[string]any)
		var cells []any
		for _, row := range shown["rows"].([]any) {
			cells = append(cells, slices.Delete(row.(map[string]any)["cells"].([]any), 3, 4))
		}
		return []any{shown["columnDefinitions"], cells}
	}
	definition := strings.Replace(gearDefinition, `"kind":"Gear"`, `"kind":"Gear","shortNames":["g","gs"]`, 1)
	for _, s := range []*server{p.original, p.ours} {
		a, err := s.ask(t.Context(), send("POST", definitionsPath, "", definition))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.code, a.text)
		require.Eventually(t, func() bool {
			a, err := s.ask(t.Context(), get(definitionsPath+"/gears.example.org"))
			return err == nil && strings.Contains(a.text, "InitialNamesAccepted") // the reason of being Established
		}, patience, 50*time.Millisecond)
	}
	r := getAs("application/json;as=Table;v=v1;g=meta.k8s.io", definitionsPath+"/gears.example.org")
	require.Equal(t, table(p.original, r), table(p.ours, r))
}

func TestDefinitions_TakeStrategicMergePatchesAsInKubernetes(t *testing.T) {
	t.Parallel()
	both := &pair{original: newOriginal(t), ours: newDefining(t)}
	path := definitionsPath + "/gears.example.org"
	for _, s := range []*server{both.original, both.ours} {
		a, err := s.ask(t.Context(), send("POST", definitionsPath, "", gearDefinition))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.code, a.text)
		require.Eventually(t, func() bool {
			a, err := s.ask(t.Context(), get(path))
			return err == nil && strings.Contains(a.text, "InitialNamesAccepted")
		}, patience, 50*time.Millisecond)
	}
	merged := func(a *answer) any {
		fields := a.values[0].(map[string]any)
		metadata := fields["metadata"].(map[string]any)
		finalizers := fmt.Sprint(metadata["finalizers"])
		return []any{fields["spec"], metadata["labels"], strings.Contains(finalizers, "a.example.org/x")} // the server's own comes later there
	}
	for _, body := range []string{
		`{}`, `{"metadata":{"labels":{"a":"1","b":"2"},"finalizers":["a.example.org/x"]}}`, `{"metadata":{"labels":{"a":null},"finalizers":[]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.example.org/x"]}}`, `{"spec":{"names":{"shortNames":["g","h"]}}}`, `{"spec":{"names":{"shortNames":["i"]}}}`,
		`{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"}}}}}]}}`,
		`{"spec":{"versions":[{"name":"v1","served":false}]}}`, `{"spec":{"scope":"Cluster"}}`, `{"metadata":{"$retainKeys":["name"]}}`, `[]`,
	} {
		r := send("PATCH", path, "application/strategic-merge-patch+json", body)
		original, err := both.original.ask(t.Context(), r)
		require.NoError(t, err)
		ours, err := both.ours.ask(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, original.code, ours.code, "%s\nKubernetes: %s\nours: %s", body, original.text, ours.text)
		if original.code == http.StatusOK {
			require.Equal(t, merged(original), merged(ours), body)
		}
	}
}
