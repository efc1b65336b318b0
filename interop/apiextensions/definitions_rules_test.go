package apiextensions

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where the definitions are, and the objects of the kind that they define.
const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	tries           = "/apis/example.com/v1/namespaces/default/tries"
)

// tryDefinition returns a definition with one version for each schema.
func tryDefinition(schemas ...string) string {
	var versions []string
	for i, schema := range schemas {
		versions = append(versions, fmt.Sprintf(`{"name":"v%d","served":true,"storage":%t,"schema":{"openAPIV3Schema":%s}}`, i+1, i == 0, schema))
	}
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"tries.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"tries","kind":"Try"},"versions":[` + strings.Join(versions, ",") + `]}}`
}

// The causes of a refusal are the same, with the same fields.
func TestDefinitions_OfRulesAreRefusedAsByKubernetes(t *testing.T) {
	t.Parallel()
	p := &pair{original: newOriginal(t), ours: newDefining(t)}
	rule := func(rule string) string {
		return `{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string"}}},"x-kubernetes-validations":[` + rule + `]}}}`
	}
	const costly = `{"rule":"self.b.all(x, self.b.all(y, x == y))"}`
	refused := 0
	for _, schemas := range [][]string{
		{rule(`{"rule":"self.a > 1"}`)}, {rule(`{"rule":"self.c > 1"}`)}, {rule(`{"rule":"self.a >"}`)}, {rule(`{"rule":"self.a"}`)}, {rule(`{"rule":""}`)}, {rule(`{"rule":" "}`)}, {rule(`{}`)},
		{rule(`{"rule":"self.a > 1\n"}`)}, {rule(`{"rule":"self.a\n> 1"}`)}, {rule(`{"rule":"self.a\n> 1","message":"x"}`)}, {rule(`{"rule":"true","message":" "}`)}, {rule(`{"rule":"true","message":"a\nb"}`)},
		{rule(`{"rule":"true","messageExpression":"1"}`)}, {rule(`{"rule":"true","messageExpression":"self.a"}`)}, {rule(`{"rule":"true","messageExpression":"string(self.a)"}`)}, {rule(`{"rule":"true","messageExpression":" "}`)},
		{rule(`{"rule":"true","reason":"FieldValueForbidden"}`)}, {rule(`{"rule":"true","reason":"Odd"}`)}, {rule(`{"rule":"true","fieldPath":".a"}`)}, {rule(`{"rule":"true","fieldPath":".c"}`)}, {rule(`{"rule":"true","fieldPath":"a"}`)},
		{rule(`{"rule":"self.a >= oldSelf.a"}`)}, {rule(`{"rule":"true","optionalOldSelf":true}`)}, {rule(`{"rule":"oldSelf.hasValue()","optionalOldSelf":true}`)},
		{rule(costly)}, {rule(costly + `,{"rule":"self.c"},` + costly)}, {strings.Replace(rule(costly), `"array"`, `"array","maxItems":10`, 1)},
		{rule(`{"rule":"self.c > 1"}`), rule(`{"rule":"self.a > 1"}`)}, {rule(`{"rule":"self.a > 1"}`), rule(`{"rule":"self.c > 1"}`)}, {rule(`{"rule":"self.c > 1"}`), rule(`{"rule":"self.c > 1"}`)},
		{strings.Replace(rule(`{"rule":"self.a > 1"}`), `"integer"`, `"integer","nullable":true,"default":1`, 1)}, {strings.Replace(rule(`{"rule":"self.a > 1"}`), `{"type":"object","properties":{"a"`, `{"type":"object","default":{"a":1},"properties":{"a"`, 1)},
		{strings.Replace(rule(`{"rule":"self.a > 1"}`), `"array"`, `"array","uniqueItems":true`, 1)},
		{`{"type":"object","properties":{"b":{"type":"array","items":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}}}`},
		{`{"type":"object","properties":{"b":{"type":"object","additionalProperties":{"type":"string","x-kubernetes-validations":[{"rule":"self.matches('a+') && self != oldSelf"}]}}}}`},
		{`{"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.name != self.kind"},{"rule":"self.metadata.labels == {}"}]}`},
		{`{"type":"object","properties":{"a":{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-validations":[{"rule":"self == 1"}]}}}`},
		{`{"type":"object","properties":{"a":{"allOf":[{"x-kubernetes-validations":[{"rule":"self.nothing"}]}],"type":"integer","x-kubernetes-validations":[{"rule":"true"}]}}}`},
		{`{"type":"object","x-kubernetes-validations":[{"rule":"true"}],"properties":{"a":{"x-kubernetes-preserve-unknown-fields":false,"type":"object"}}}`},
	} {
		body := tryDefinition(schemas...)
		original, ours := p.ask(t, send("POST", definitionsPath+"?dryRun=All", "", body))
		if original.code == 201 {
			original.text, ours.text = "", "" // what is stored is not about rules
		} else {
			refused++
		}
		if original != ours {
			t.Errorf("%s\n%s", body, difference(original, ours))
		}
	}
	require.Greater(t, refused, 20)
}

// Objects that are older than a rule may stay as they are, with a warning.
func TestDefinitions_OfNewRulesAreHonouredAsByKubernetes(t *testing.T) {
	t.Parallel()
	s := &script{T: t, pair: &pair{original: newOriginal(t), ours: newDefining(t)}}
	until := func(code int, r request) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for original, ours := s.ask(t, r); original.code != code || ours.code != code; original, ours = s.ask(t, r) {
			require.NoError(t, ctx.Err(), difference(original, ours))
		}
	}
	schema := func(rule string) string {
		size := `{"type":"integer"` + rule + `}`
		part := `{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"size":` + size + `,"other":{"type":"integer"}}}`
		return `{"type":"object","properties":{"spec":{"type":"object","properties":{"size":` + size + `,"other":{"type":"integer"},"inner":{"type":"object","properties":{"size":` + size + `,"other":{"type":"integer"}}},
			"map":{"type":"object","additionalProperties":` + size + `},"atoms":{"type":"array","items":` + size + `},
			"parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":` + part + `}}}}}`
	}
	try := func(name, spec string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Try","metadata":{"name":%q},"spec":%s}`, name, spec)
	}
	s.ask(t, send("POST", definitionsPath, "", tryDefinition(schema(``))))
	until(200, get(tries))
	s.same(send("POST", tries, "", try("a", `{"size":1,"inner":{"size":1},"map":{"x":1,"y":9},"atoms":[1,9],"parts":[{"name":"p","size":1},{"name":"q","size":9}]}`)))
	changed := strings.Replace(tryDefinition(schema(`,"x-kubernetes-validations":[{"rule":"self > 5","message":"too small"}]`)), `{"name":"tries.example.com"}`, `{"name":"tries.example.com","labels":{"a":"b"}}`, 1)
	s.ask(t, send("PATCH", definitionsPath+"/tries.example.com", mergePatch, changed))
	until(422, send("POST", tries+"?dryRun=All", "", try("b", `{"size":1}`)))
	for _, spec := range []string{
		`{}`, `{"other":1}`, `{"size":2}`, `{"size":6}`, `{"inner":{"other":1}}`, `{"inner":{"size":2}}`, `{"map":{"z":7}}`, `{"map":{"z":1}}`, `{"map":{"y":1}}`,
		`{"atoms":[1,9,9]}`, `{"atoms":[9,1]}`, `{"parts":[{"name":"q","size":9},{"name":"p","size":1,"other":2}]}`, `{"parts":[{"name":"q","size":1},{"name":"p","size":9}]}`,
	} {
		s.same(send("PATCH", tries+"/a?dryRun=All", mergePatch, `{"metadata":{"labels":{"a":"b"}},"spec":`+spec+`}`))
	}
	s.same(send("PATCH", tries+"/a", mergePatch, `{"metadata":{"finalizers":["example.com/hold"]}}`))
	require.Empty(t, strings.Join(s.wrong, "\n"))
}
