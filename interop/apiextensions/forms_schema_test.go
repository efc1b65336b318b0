package apiextensions

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Schemas may say what fields there are in other ways than widgets do.
func TestSchema_OfFurtherFieldsAndOpenListsIsAsInKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	e.define(aVersion{name: "v1", served: true, storage: true, spec: `,"size":{"type":"integer"},"any":{"type":"object","additionalProperties":true},"none":{"type":"object","additionalProperties":false},
		"open":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}}}}}},
		"both":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"additionalProperties":true},
		"odd":{"type":"string","format":"odd"},"flag":{"type":"boolean","format":"odd"},"either":{"x-kubernetes-int-or-string":true,"format":"odd"}`})
	for i, spec := range []string{
		`{"any":{"a":1,"b":{"c":1},"d":[{"e":1},2],"f":null}}`, `{"none":{}}`, `{"none":{"a":1}}`, `{"none":{"a":{"b":1}}}`,
		`{"open":[{"a":{"b":1,"x":2},"c":{"d":1}},{}]}`, `{"both":{"a":{"b":1},"c":1}}`,
		`{"odd":"a"}`, `{"odd":["a"]}`, `{"odd":5}`, `{"flag":true}`, `{"flag":"yes"}`, `{"flag":[]}`, `{"either":5}`, `{"either":["a"]}`,
		`{"size":-1}`, `{"size":2147483647}`, `{"size":2147483648}`, `{"size":null}`, `{"size":"1"}`, `{"size":1.5}`,
	} {
		for _, validation := range []string{"Warn", "Strict", "Ignore"} {
			e.same(send(http.MethodPost, tries+"?fieldValidation="+validation, "", tryOf("v1", strings.ToLower(fmt.Sprint(validation, i)), ``, spec)))
		}
	}
	e.reads("v1", "warn0", "warn4", "warn5")
	for i, finalizers := range []string{`["mine"]`, `["example.com"]`, `["example.com/mine","mine","orphan","kubernetes","a"]`} {
		e.same(send(http.MethodPost, tries, "", tryOf("v1", fmt.Sprint("f", i), `,"finalizers":`+finalizers, `{}`)))
		e.same(send(http.MethodPatch, tries+"/"+fmt.Sprint("f", i), mergePatch, `{"metadata":{"finalizers":["mine","late"]}}`))
		e.same(send(http.MethodPatch, tries+"/"+fmt.Sprint("f", i)+"/status", mergePatch, `{"status":{"size":-1}}`))
	}
	require.Empty(t, strings.Join(e.wrong, "\n"))
}

// A status that is not a subresource is a field as any other.
func TestGeneration_OfAKindWithoutTheStatusSubresourceIsAsInKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	e.align(send(http.MethodPost, definitionsPath, "", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"tries.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"tries","kind":"Try"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"integer"}}},"status":{"type":"object","properties":{"n":{"type":"integer"}}}}}}}]}}`))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e.until(ctx, http.StatusCreated, send(http.MethodPost, tries+"?dryRun=All", "", tryOf("v1", "a", ``, `{"a":1}`)))
	e.same(send(http.MethodPost, tries, "", tryOf("v1", "a", ``, `{"a":1}`)))
	for _, change := range []string{`{"status":{"n":1}}`, `{"status":{"n":1}}`, `{"status":{"n":2}}`, `{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"a":2}}`, `{"status":null}`} {
		e.same(send(http.MethodPatch, tries+"/a", mergePatch, change))
	}
	require.Empty(t, strings.Join(e.wrong, "\n"))
}

// What is wrong with an object that is older than its schema does not keep a controller from saying how
// it is.
func TestStatus_OfAnObjectThatIsOlderThanItsSchemaIsAsInKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	define := func(root string) string {
		return `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object"` + root + `,"properties":{
			"spec":{"type":"object","properties":{"a":{"type":"integer"}}},"status":{"type":"object","properties":{"n":{"type":"integer","maximum":9}}}}}}}]}}`
	}
	e.align(send(http.MethodPost, definitionsPath, "", strings.Replace(define(``), `{"spec":{`, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"tries.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"tries","kind":"Try"},`, 1)))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const bare = `{"apiVersion":"example.com/v1","kind":"Try","metadata":{"name":"a"}}`
	e.until(ctx, http.StatusCreated, send(http.MethodPost, tries+"?dryRun=All", "", bare))
	e.same(send(http.MethodPost, tries, "", bare))
	e.align(send(http.MethodPatch, definitionsPath+"/tries.example.com", mergePatch, define(`,"required":["spec"]`)))
	e.until(ctx, http.StatusUnprocessableEntity, send(http.MethodPost, tries+"?dryRun=All", "", strings.Replace(bare, `"a"`, `"b"`, 1)))
	for _, status := range []string{`{"n":1}`, `{"n":10}`, `{"n":"x"}`, `{"n":2}`} {
		e.same(send(http.MethodPatch, tries+"/a/status", mergePatch, `{"status":`+status+`}`))
	}
	e.same(send(http.MethodPatch, tries+"/a", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`))
	require.Empty(t, strings.Join(e.wrong, "\n"))
}
