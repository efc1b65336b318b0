package apiextensions

import "strings"

// jsonPatches patch the thing t by operations.
func jsonPatches(s *script) {
	of := func(body string) request { return send("PATCH", things+"/t", jsonPatch, body) }
	for _, body := range []string{
		`[{"op":"add","path":"/l","value":[1,2]},{"op":"add","path":"/l/1","value":9},{"op":"add","path":"/l/-","value":null}]`,
		`[{"op":"test","path":"/l","value":[1]}]`, `[{"op":"move","from":"/l","path":"/m"},{"op":"copy","from":"/m","path":"/k"},{"op":"remove","path":"/m/0"}]`,
		`[{"op":"remove","path":"/none"}]`, `[{"op":"add","path":"/none/deep","value":1}]`, `[{"op":"add","path":"/k/99","value":1}]`, `{}`, `[]`, `nope`,
		`[{"op":"remove","path":""}]`, `[{"op":"replace","path":"/metadata/name","value":"q"}]`, `[{"op":"remove","path":"/metadata"}]`, `[{"op":"add","path":"/a~1b~0c","value":1}]`,
		`[{"op":"add","path":"/metadata/resourceVersion","value":"1"}]`, `[{"op":"test","path":"/a","value":1},{"op":"replace","path":"/a","value":2}]`, `[{"op":"test","path":"/a","value":1}]`,
	} {
		s.same(of(body))
	}
	s.same(send("PATCH", things+"/none", jsonPatch, `[]`))
	for _, body := range []string{
		`[{"op":"replace","path":"/missing","value":1}]`, `[{"op":"replace","path":"/none/deep","value":1}]`, `[{"op":"add","path":"/l","value":[1,2,3]},{"op":"replace","path":"/l/-1","value":9},{"op":"remove","path":"/l/-3"},{"op":"add","path":"/l/-1","value":5}]`,
		`[{"op":"replace","path":"/l/-4","value":1}]`, `[{"op":"replace","path":"/l/3","value":1}]`, `[{"op":"replace","path":"/l/-","value":1}]`, `[{"op":"replace","path":"/l/x","value":1}]`,
	} {
		s.same(send("PATCH", things+"/u", jsonPatch, body))
	}
	s.same(of("[" + strings.Repeat(`{"op":"add","path":"/many","value":1},`, 9_999) + `{"op":"add","path":"/many","value":2}]`))
	s.same(of("[" + strings.Repeat(`{"op":"add","path":"/many","value":1},`, 10_000) + `{"op":"add","path":"/many","value":3}]`))
	s.same(send("DELETE", things+"/u", "", ""))
	s.differ("what is not an operation is not a patch", of(`[{"op":"frob","path":"/k"}]`))
	s.differ("what is not an operation is not a patch", of(`[{"op":"add"}]`))
	s.differ("a patch whose result is not an object is a bad request", of(`[{"op":"replace","path":"","value":{}}]`))
	s.differUnlessPassedOn("a result of another kind is a bad request", of(`[{"op":"replace","path":"/kind","value":"Q"}]`))
}

// mergePatches patch things, and the widget a.
func mergePatches(s *script) {
	for _, body := range []string{`{"a":null,"z":{"y":null,"x":1}}`, `[]`, `5`, `null`, `{`, `{}`} {
		s.same(send("PATCH", things+"/t", mergePatch, body))
	}
	for _, media := range []string{"application/strategic-merge-patch+json", "application/json", "text/plain"} {
		s.same(send("PATCH", things+"/t", media, `{}`))
	}
	s.same(send("PATCH", things+"/none", mergePatch, `{}`))
	s.same(send("PATCH", things+"/t", applyPatch, `{}`))
	for _, body := range []string{
		`{"metadata":{"labels":{"x":"y"}}}`, `{"spec":{"size":null}}`, `{"spec":{"color":null}}`, `{"spec":{"zz":1}}`, `{"metadata":{"resourceVersion":"1"},"spec":{"size":3}}`,
		`{"metadata":{"resourceVersion":"$rv:a$"},"spec":{"size":3}}`, `{"metadata":{"name":"zzz"}}`, `{"metadata":{"namespace":"zzz"}}`, `{"metadata":{"labels":null,"annotations":null}}`,
		`{"metadata":{"finalizers":["a.b/c"]}}`, `{"metadata":{"finalizers":null}}`, `{"metadata":null}`, `{"spec":{"size":"x"}}`,
	} {
		s.same(patch(mergePatch, "a", body))
	}
	s.same(patch(mergePatch, "a?force=true", `{"spec":{"size":3}}`))
	s.same(patch(mergePatch, "a?dryRun=All", `{"spec":{"size":4}}`))
	s.same(patch(mergePatch, "a?fieldValidation=Strict", `{"spec":{"size":1,"size":2}}`))
	for _, r := range []request{
		patch(mergePatch, "a?fieldValidation=Strict", `{"spec":{"zz":1}}`),
		patch(jsonPatch, "a?fieldValidation=Strict", `[{"op":"add","path":"/spec/zz","value":1}]`),
		patch(mergePatch, "a", `{"metadata":{"labels":{"a":1}}}`),
	} {
		s.differAtReplica("a replica sends the result, which its origin refuses as a body", r)
	}
	s.differ("a warning says that the patch has the field twice", patch(mergePatch, "a?fieldValidation=Warn", `{"spec":{"size":1,"size":2}}`))
	s.differ("a uid that is not the object's is a conflict, as it is for PUT", patch(mergePatch, "a", `{"metadata":{"uid":"1"}}`))
	s.differUnlessPassedOn("a result of another kind is a bad request", patch(mergePatch, "a", `{"kind":"X"}`))
}

// applies apply configurations to widgets.
func applies(s *script) {
	spec := func(spec string) string { return widget("ap", ``, spec) }
	for _, r := range []request{
		applyTo("ap", "", spec(`{"size":1}`)),
		applyTo("ap", "fieldManager=m1", spec(`{"size":1,"parts":[{"name":"a"},{"name":"b","count":2}],"set":[1,2],"atoms":["x"],"atomMap":{"a":"1"},"extra":{"q":{"r":1}}}`)),
		applyTo("ap", "fieldManager=m2", spec(`{"size":2}`)),
		applyTo("ap", "fieldManager=m2", spec(`{"size":2,"parts":[{"name":"b","count":3}],"atoms":["y"],"atomMap":{"b":"1"},"extra":{"q":{"r":2}}}`)),
		applyTo("ap", "fieldManager=m2&force=true", spec(`{"size":2,"parts":[{"name":"b","count":3},{"name":"c"}],"atoms":["y"],"set":[2,3]}`)),
		applyTo("ap", "fieldManager=m1", spec(`{"parts":[{"name":"a"}]}`)),
		applyTo("ap", "fieldManager=m1", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"ap"}}`),
		applyTo("ap", "fieldManager=m2", widget("other", ``, `{"size":2}`)), applyTo("ap", "fieldManager=m2", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"ap"}}`),
		applyTo("ap", "fieldManager=m2", `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"ap"}}`), applyTo("ap", "fieldManager=m2", `{"kind":"Widget","metadata":{"name":"ap"}}`),
		applyTo("ap", "fieldManager=m2", widget("ap", `,"managedFields":[{"manager":"z","operation":"Apply"}]`, `{"size":2}`)), applyTo("ap", "fieldManager=m2", widget("ap", `,"resourceVersion":"1"`, `{"size":2}`)),
		applyTo("ap", "fieldManager=m2", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: ap}\nspec: {size: 3}\n"), applyTo("ap", "fieldManager=m2", `:::`), applyTo("ap", "fieldManager=m2", ``), applyTo("ap", "fieldManager=m2", `[]`),
		applyTo("ap", "fieldManager=m2&force=maybe", `{}`), applyTo("ap", "fieldManager=m2&dryRun=All&force=true", widget("ap", `,"labels":{"a":"b"}`, `{"size":4}`)),
		applyTo("ap/status", "fieldManager=st", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"ap"},"spec":{"size":44},"status":{"size":4,"conditions":[{"type":"A","status":"B"}]}}`),
		applyTo("none/status", "fieldManager=st", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"none"},"status":{"size":4}}`),
		get(widgets + "/ap"), patch(mergePatch, "ap?fieldManager=m3", `{"spec":{"color":"red","parts":[{"name":"z"}]}}`),
		applyTo("ap", "fieldManager=m2", spec(`{"size":2,"color":"green"}`)), patch(mergePatch, "ap?fieldManager=m3", `{"metadata":{"managedFields":null}}`),
		patch(mergePatch, "ap?fieldManager=m3", `{"metadata":{"managedFields":[{}]}}`), patch(mergePatch, "ap?fieldManager=m3", `{"spec":{"size":9}}`),
		applyTo("ap", "fieldManager=m2", spec(`{"size":2,"color":"green"}`)), get(widgets + "/ap"),
	} {
		s.same(r)
	}
	const theClient = "a configuration that does not fit the schema is not a failure of the server"
	for _, wrong := range []string{`{"size":2,"parts":[{"name":"b"},{"name":"b"}]}`, `{"size":2,"parts":[{"count":1}]}`, `{"size":2,"set":[1,1]}`, `{"size":"x"}`, `{"size":2,"nope":1}`} {
		s.differUnlessPassedOn(theClient, applyTo("ap", "fieldManager=m2", spec(wrong)))
	}
	s.differUnlessPassedOn("null is the same as missing, as it is in other writes", applyTo("ap", "fieldManager=m2&force=true&dryRun=All", spec(`{"size":2,"set":null}`)))
	s.differUnlessPassedOn("a revision of an object that is gone is a conflict", applyTo("ap9", "fieldManager=m2", widget("ap9", `,"resourceVersion":"1"`, `{"size":2}`)))
	s.same(applyTo("ap8", "fieldManager=m2", widget("ap8", `,"uid":"1"`, `{"size":2}`)))
	for _, owner := range []string{`{}`, `{"apiVersion":"v1","kind":"X","name":"a"}`, `{"apiVersion":"v1","kind":"X","name":"a","uid":"1"}`} {
		s.same(applyTo("owned", "fieldManager=m2&dryRun=All", widget("owned", `,"ownerReferences":[`+owner+`]`, `{"size":2}`)))
	}
	s.align(remove("ap9", ""))
}
