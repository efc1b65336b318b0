package apiextensions

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// aVersion is a version of the tries of a definition: the properties of their spec, in JSON.
type aVersion struct {
	name            string
	served, storage bool
	spec            string
	more            string // other fields of the version
}

// evolving has a definition whose schemas change while there are objects.
type evolving struct {
	*script
	generation int
}

func newEvolving(t *testing.T) *evolving {
	t.Helper()
	return &evolving{script: &script{T: t, pair: &pair{original: newOriginal(t), ours: newDefining(t)}}}
}

// define has both serve tries of these versions, and waits until they do: a property of the spec,
// which is another one each time, is then known.
func (e *evolving) define(versions ...aVersion) {
	e.Helper()
	e.generation++
	var all []string
	for _, v := range versions {
		schema := fmt.Sprintf(`{"type":"object","properties":{"spec":{"type":"object","properties":{"generation%d":{"type":"integer"},"color":{"type":"string"}%s}},
			"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`, e.generation, v.spec)
		all = append(all, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}},
			"additionalPrinterColumns":[{"name":"Color","type":"string","jsonPath":".spec.color"},{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}],"schema":{"openAPIV3Schema":%s}%s}`, v.name, v.served, v.storage, schema, v.more))
	}
	r := send(http.MethodPatch, definitionsPath+"/tries.example.com", mergePatch, `{"spec":{"versions":[`+strings.Join(all, ",")+`]}}`)
	if e.generation == 1 {
		r = send(http.MethodPost, definitionsPath, "", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"tries.example.com"},
			"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"tries","kind":"Try","listKind":"Trials"},"versions":[`+strings.Join(all, ",")+`]}}`)
	}
	original, ours := e.ask(e.T, r)
	require.Less(e, original.code, 300, original.text)
	require.Less(e, ours.code, 300, ours.text)
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	for _, v := range versions {
		if !v.served {
			e.until(ctx, http.StatusNotFound, get(triesIn(v.name)))
			continue
		}
		e.until(ctx, http.StatusCreated, send(http.MethodPost, triesIn(v.name)+"?dryRun=All&fieldValidation=Strict", "",
			tryOf(v.name, "probe", ``, fmt.Sprintf(`{"generation%d":1}`, e.generation))))
		e.until(ctx, http.StatusOK, get(triesIn(v.name))) // the new cache has been filled
	}
}

// until sends a request until both answer with the code.
func (e *evolving) until(ctx context.Context, code int, r request) {
	e.Helper()
	for original, ours := e.ask(e.T, r); original.code != code || ours.code != code; original, ours = e.ask(e.T, r) {
		require.NoError(e, ctx.Err(), "%s\n%s", r.path, difference(original, ours))
	}
}

// keep keeps the revision that an object has now as $before$.
func (e *evolving) keep(name string) {
	for _, s := range []*server{e.original, e.ours} {
		s.said["before"] = s.said["rv:"+name]
	}
}

// isAtBefore asks whether an object is at the revision $before$.
func (e *evolving) isAtBefore(name string) {
	e.Helper()
	e.same(send(http.MethodDelete, tries+"/"+name+"?dryRun=All", "", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"$before$"}}`))
}

// triesIn is where tries are in a version.
func triesIn(version string) string { return strings.Replace(tries, "/v1/", "/"+version+"/", 1) }

// tryOf is a try's JSON. more are fields of its metadata besides the name.
func tryOf(version, name, more, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Try","metadata":{"name":%q%s},"spec":%s}`, version, name, more, spec)
}

// reads reads all tries in a version, in all ways that there are. The cache of the version has what
// was written in the others once it has answered a list.
func (e *evolving) reads(version string, names ...string) {
	e.Helper()
	at := triesIn(version)
	e.same(get(at))
	for _, name := range names {
		e.same(get(at + "/" + name))
		e.same(get(at + "/" + name + "?resourceVersion=0"))
		e.same(get(at + "/" + name + "/status"))
	}
	for _, query := range []string{"?resourceVersion=0", "?limit=500", "?watch=true&timeoutSeconds=1&resourceVersion=0", "?fieldSelector=spec.color%3Dgrey", "?fieldSelector=spec.color%3D"} {
		e.same(get(at + query))
	}
	e.same(getAs("application/json;as=Table;v=v1;g=meta.k8s.io", at))
}

// Objects are shown as the schema is now, and not as it was when they were stored.
func TestSchema_OfStoredObjectsIsAsInKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	v1 := func(spec string) aVersion {
		return aVersion{name: "v1", served: true, storage: true, spec: spec, more: `,"selectableFields":[{"jsonPath":".spec.color"}]`}
	}
	const first = `,"old":{"type":"string"},"size":{"type":"integer"},"inner":{"type":"object","properties":{"a":{"type":"integer"},"old":{"type":"integer"}}},
		"items":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}}}},
		"map":{"type":"object","additionalProperties":{"type":"object","properties":{"x":{"type":"integer"}}}},
		"maybe":{"type":"string","nullable":true},"perhaps":{"type":"string","nullable":true}`
	e.define(v1(first))
	e.same(send(http.MethodPost, tries, "", tryOf("v1", "a", ``, `{"old":"o","color":"red","inner":{"old":1},"items":[{"x":1},{"y":2},{}],"map":{"k":{},"l":{"x":1}},"maybe":null,"perhaps":null}`)))
	e.same(send(http.MethodPost, tries, "", tryOf("v1", "b", `,"finalizers":["example.com/hold"]`, `{}`)))
	e.same(send(http.MethodPost, tries, "", `{"apiVersion":"example.com/v1","kind":"Try","metadata":{"name":"c"}}`))

	second := strings.NewReplacer(`,"old":{"type":"string"}`, ``, `"size":{"type":"integer"`, `"size":{"type":"integer","default":3`, `,"old":{"type":"integer"}`, ``, `"inner":{"type":"object"`, `"inner":{"type":"object","default":{}`,
		`"a":{"type":"integer"`, `"a":{"type":"integer","default":1`, `"x":{"type":"integer"`, `"x":{"type":"integer","default":5`, `"maybe":{"type":"string","nullable":true`, `"maybe":{"type":"string","default":"m"`, `"perhaps":{"type":"string","nullable":true`, `"perhaps":{"type":"string"`)
	e.define(v1(second.Replace(first)))
	e.reads("v1", "a", "b", "c")

	e.same(get(tries + "/a"))
	e.keep("a")
	e.isAtBefore("a")
	e.same(send(http.MethodPatch, tries+"/a?dryRun=All", mergePatch, `{}`))
	e.same(send(http.MethodPatch, tries+"/a", jsonPatch, `[{"op":"test","path":"/spec/inner/a","value":1}]`))
	e.isAtBefore("a") // what looks the same is stored in its new form
	e.keep("a")
	e.same(send(http.MethodPatch, tries+"/a", mergePatch, `{}`))
	e.isAtBefore("a")
	e.same(send(http.MethodPatch, tries+"/b/status", mergePatch, `{"status":{"size":1}}`))
	e.same(send(http.MethodPatch, tries+"/c?fieldManager=m", applyPatch, tryOf("v1", "c", ``, `{"color":"blue","inner":{"a":1}}`)))
	e.same(get(tries + "/c/scale"))
	e.same(send(http.MethodDelete, tries+"/b", "", ``))
	e.reads("v1", "a", "b", "c")

	third := strings.NewReplacer(`"default":3`, `"default":4`, `"default":5`, `"default":6`, `"color":{"type":"string"`, `"color":{"type":"string","default":"grey"`)
	e.same(send(http.MethodPost, tries, "", tryOf("v1", "d", ``, `{}`)))
	e.define(v1(third.Replace(second.Replace(first)) + `,"late":{"type":"object","default":{"a":"b"},"properties":{"a":{"type":"string"},"c":{"type":"string","default":"d"}}}`))
	e.reads("v1", "a", "b", "c", "d")
	e.keep("d")
	e.same(send(http.MethodDelete, tries+"/b?propagationPolicy=Background", "", ``)) // again, which changes nothing
	e.same(send(http.MethodPatch, tries+"/b", mergePatch, `{"metadata":{"finalizers":null}}`))
	e.define(v1(``))
	e.reads("v1", "a", "c", "d")
	e.same(send(http.MethodDelete, tries, "", ``))
	e.reads("v1")
	require.Empty(t, strings.Join(e.wrong, "\n"))
}

// Each version shows what its own schema has of what is stored, with the defaults of the version in
// which it was stored. Managed fields are not compared: Kubernetes fails to record a write, and refuses
// an apply, where another version does not have a field of the object.
func TestSchema_OfVersionsIsAsInKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	e.without = "managedFields"
	const one = `,"size":{"type":"integer","default":1},"only1":{"type":"string"},"both":{"type":"string","nullable":true},"inner":{"type":"object","properties":{"a":{"type":"string","default":"one"}}}`
	const two = `,"size":{"type":"integer","default":2},"only2":{"type":"string"},"both":{"type":"string"},"inner":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"two"}}}`
	v1, v2 := aVersion{name: "v1", served: true, storage: true, spec: one}, aVersion{name: "v2", served: true, spec: two}
	both := func(names ...string) {
		e.Helper()
		e.reads("v1", names...)
		e.reads("v2", names...)
	}
	write := func(version, name, spec string) {
		e.Helper()
		e.same(send(http.MethodPost, triesIn(version), "", tryOf(version, name, ``, spec)))
	}
	e.define(v1, v2)
	write("v1", "a", `{"only1":"x","both":null,"inner":{}}`)
	write("v2", "b", `{"only2":"x","both":"y","inner":{}}`)
	write("v2", "c", `{}`)
	e.same(send(http.MethodPost, triesIn("v2")+"?dryRun=All", "", tryOf("v2", "z", ``, `{"only2":"x","inner":{}}`)))
	both("a", "b", "c")
	e.keep("b")
	for _, version := range []string{"v1", "v2"} {
		e.same(send(http.MethodPatch, triesIn(version)+"/b", mergePatch, `{}`))
		e.isAtBefore("b")
	}
	e.same(send(http.MethodPatch, triesIn("v2")+"/b", mergePatch, `{"spec":{"only2":"lost"}}`))
	e.isAtBefore("b")
	e.same(send(http.MethodPatch, triesIn("v2")+"/a", mergePatch, `{"spec":{"color":"red"}}`))
	e.same(send(http.MethodPatch, triesIn("v2")+"/c/status", mergePatch, `{"status":{"size":5}}`))
	both("a", "b", "c")

	v1.storage, v2.storage = false, true
	e.define(v1, v2)
	both("a", "b", "c")
	write("v1", "d", `{"only1":"x","both":null,"inner":{}}`)
	write("v2", "e", `{"only2":"x","inner":{}}`)
	both("d", "e")
	e.same(get(tries + "/a"))
	e.keep("a")
	e.same(send(http.MethodPatch, triesIn("v1")+"/a", mergePatch, `{}`))
	e.isAtBefore("a") // it is stored in v2 now
	both("a", "b", "c", "d", "e")

	v2.served = false
	e.define(v1, v2)
	e.reads("v1", "a", "b", "c", "d", "e")
	write("v1", "f", `{"only1":"x","inner":{}}`)
	e.same(send(http.MethodPatch, triesIn("v1")+"/b", mergePatch, `{"spec":{"color":"blue"}}`))
	e.reads("v1", "b", "f")
	v2.served = true
	e.define(v1, v2)
	both("a", "b", "c", "d", "e", "f")
	require.Empty(t, strings.Join(e.wrong, "\n"))
}

// A manager keeps what it owns by one version while others write in another.
func TestApply_AcrossVersionsIsAsInKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	const spec = `,"size":{"type":"integer"},"both":{"type":"string"}`
	e.define(aVersion{name: "v1", served: true, storage: true, spec: spec}, aVersion{name: "v2", served: true, spec: spec})
	apply := func(version, manager, spec string) {
		e.Helper()
		e.same(send(http.MethodPatch, triesIn(version)+"/a?fieldManager="+manager, applyPatch, tryOf(version, "a", ``, spec)))
		e.same(get(triesIn("v1") + "/a"))
	}
	apply("v2", "m1", `{"color":"red","both":"y"}`)
	apply("v1", "m2", `{"size":1}`)
	apply("v1", "m2", `{"color":"blue"}`) // a conflict
	apply("v1", "m1", `{"color":"blue"}`) // without both, which goes
	e.same(send(http.MethodPatch, triesIn("v1")+"/a", mergePatch, `{"spec":{"size":3}}`))
	apply("v1", "m2", `{"size":1}`) // a conflict with the patch
	e.same(send(http.MethodPatch, triesIn("v2")+"/a/status?fieldManager=m2", applyPatch, `{"apiVersion":"example.com/v2","kind":"Try","metadata":{"name":"a"},"status":{"size":5}}`))
	apply("v2", "m1", `{}`)
	e.reads("v2", "a")
	require.Empty(t, strings.Join(e.wrong, "\n"))
}

// Each answer of a version that is deprecated warns of that, in the words of its definition or in
// Kubernetes' own.
func TestDefinitions_OfDeprecatedVersionsWarnAsInKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	versions := []aVersion{
		{name: "v1", served: true, storage: true, spec: `,"size":{"type":"integer"}`, more: `,"deprecated":true`},
		{name: "v1beta1", served: true, spec: `,"size":{"type":"integer"}`, more: `,"deprecated":true,"deprecationWarning":"do \"not\" use \\ it"`},
		{name: "v2alpha1", served: true}, {name: "v2", served: true, spec: `,"size":{"type":"integer"}`}, {name: "v3", spec: ``}, {name: "v4", served: true, more: `,"deprecated":true`},
	}
	e.without = "managedFields"
	e.define(versions...)
	for _, v := range versions {
		if !v.served {
			continue
		}
		at := triesIn(v.name)
		e.same(send(http.MethodPost, at, "", tryOf(v.name, v.name, ``, `{"size":1,"unknown":1}`)))
		e.same(send(http.MethodPost, at, "", tryOf(v.name, v.name, ``, `{}`)))
		e.same(send(http.MethodPatch, at+"/"+v.name, mergePatch, `{"spec":{"color":"red"}}`))
		e.same(send(http.MethodPatch, at+"/"+v.name+"/status", mergePatch, `{"status":{"size":1}}`))
		e.same(send(http.MethodPatch, at+"/"+v.name, mergePatch, `{"spec":{"color":1}}`))
		e.reads(v.name, v.name)
		e.same(getAs("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", at))
		e.same(get(at + "?limit=x"))
		e.same(send(http.MethodDelete, at+"/"+v.name, "", ``))
	}
	e.same(get("/apis/example.com"))
	e.same(get("/apis/example.com/v4"))
	require.Empty(t, strings.Join(e.wrong, "\n"))
}

// The objects that are there when the fields to select by change are selected by the new ones.
func TestSchema_OfOtherSelectableFieldsIsAsInKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	selecting := func(fields string) aVersion {
		return aVersion{name: "v1", served: true, storage: true, spec: `,"size":{"type":"integer"}`, more: fields}
	}
	reads := func() {
		for _, selector := range []string{"metadata.name%3Da", "spec.color%3Dred", "spec.color!%3Dred", "spec.size%3D3", "spec.size%3D3,spec.color%3Dred", "spec.size%3D"} {
			e.same(get(tries + "?fieldSelector=" + selector))
			e.same(get(tries + "?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=" + selector))
		}
	}
	e.define(selecting(``))
	e.same(send(http.MethodPost, tries, "", tryOf("v1", "a", ``, `{"color":"red","size":3}`)))
	e.same(send(http.MethodPost, tries, "", tryOf("v1", "b", ``, `{"color":"blue","size":3}`)))
	for i, fields := range []string{`,"selectableFields":[{"jsonPath":".spec.color"}]`, `,"selectableFields":[{"jsonPath":".spec.color"},{"jsonPath":".spec.size"}]`, `,"selectableFields":[{"jsonPath":".spec.size"}]`, ``} {
		e.define(selecting(fields))
		reads()
		e.same(send(http.MethodPost, tries, "", tryOf("v1", fmt.Sprintf("c%d", i), ``, `{"color":"red"}`)))
		reads()
	}
	require.Empty(t, strings.Join(e.wrong, "\n"))
}
