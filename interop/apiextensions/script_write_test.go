package apiextensions

import (
	"fmt"
	"strings"
)

// creations are requests that create a widget, or should.
func creations(s *script) {
	s.same(post(widget("a", ``, `{"size":1}`)))
	s.same(post(widget("a", ``, `{"size":1}`)))
	for _, body := range []string{
		``, `{`, `[]`, `"x"`, `{"apiVersion":5,"kind":"Widget"}`, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"q"}}`,
		widget("Bad_Name", ``, `{"size":1}`), widget("b", `,"namespace":"other"`, `{"size":1}`), widget("b", `,"uid":"zzz"`, `{"size":1}`),
		widget("b2", `,"generation":7,"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":3`, `{"size":1}`),
		widget("b3", `,"labels":{"a b":"c","x":"!!"},"annotations":{"a b":"c"}`, `{"size":1}`), widget("b4", `,"finalizers":["bad","a.b/c","A_b/c"]`, `{"size":1}`),
		widget("b5", `,"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"","uid":""}]`, `{"size":1}`),
		widget("b5", `,"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"a","uid":"1","controller":true},{"apiVersion":"v1","kind":"X","name":"b","uid":"2","controller":true}]`, `{"size":1}`),
		widget("b6", `,"labels":5`, `{"size":1}`), widget("b7", `,"labels":{"a":5}`, `{"size":1}`), widget("b8", `,"unknown":5`, `{"size":1}`),
		widget("b9", `,"labels":{},"annotations":null,"finalizers":[],"ownerReferences":[],"generateName":""`, `{"size":1}`),
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":[],"spec":{"size":1}}`, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":5},"spec":{"size":1}}`,
		`{"apiVersion":"example.com/v1","kind":"Widget"}`,
	} {
		s.same(post(body))
	}
	for i, validation := range []string{"Strict", "Warn", "Ignore", "strict", ""} {
		s.same(postWith("fieldValidation="+validation, widget(fmt.Sprint("v", i), ``, `{"size":1,"colour":"x","size":2,"deep":{"zz":1},"extra":{"free":1}}`)))
	}
	for _, dry := range []string{"All", "all", "", "All&dryRun=All", "None"} {
		s.same(postWith("dryRun="+dry, widget("dry", ``, `{"size":1}`)))
	}
	s.same(postWith("fieldManager=me", widget("m1", ``, `{"size":1}`)))
	s.same(postWith("fieldManager=me%0A", widget("m2", ``, `{"size":1}`)))
	s.same(postWith("fieldManager="+strings.Repeat("m", 129), widget("m2", ``, `{"size":1}`)))
	s.same(postWith("pretty=true&nonsense=1", widget("m3", ``, `{"size":1}`)))
	s.same(send("POST", widgets, "application/json; charset=utf-8", widget("m4", ``, `{"size":1}`)))
	s.same(request{method: "POST", path: widgets, body: widget("m5", ``, `{"size":1}`)})
	s.same(send("POST", widgets, "text/plain", widget("m6", ``, `{"size":1}`)))
	s.same(send("POST", widgets, ";;;", widget("m6", ``, `{"size":1}`)))
	s.same(send("HEAD", widgets, "", ""))

	s.differUnlessPassedOn("kinds of Go's types are served, too, of which bodies need not say what they are", post(`{"kind":"Widget","metadata":{"name":"q"},"spec":{"size":1}}`))
	s.differUnlessPassedOn("as for a body that does not say it", post(`null`))
	s.differUnlessPassedOn("a body of another kind is as wrong as one of another version", post(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"q"}}`))
	s.differUnlessPassedOn("a request that is wrong is not a failure of the server", post(widget("b", `,"resourceVersion":"5"`, `{"size":1}`)))
	s.differ("bodies are JSON", send("POST", widgets, "application/yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: y1}\nspec: {size: 3}\n"))
	s.differ("the resource is there, but not for that method", send("POST", "/apis/example.com/v1/widgets", "", widget("a", ``, `{"size":1}`)))
	s.differ("a collection is not replaced", send("PUT", widgets, "", widget("a", ``, `{"size":1}`)))
	for _, name := range []string{"y1", "q"} {
		s.align(remove(name, ""))
	}
}

// schemas are widgets whose spec is good or bad.
func schemas(s *script) {
	for i, spec := range []string{
		`{}`, `{"size":-1}`, `{"size":101}`, `{"size":1.5}`, `{"size":"1"}`, `{"size":null}`, `{"size":1,"color":"blue"}`, `{"size":1,"color":null}`,
		`{"size":1,"port":"http"}`, `{"size":1,"port":80}`, `{"size":1,"port":1.5}`, `{"size":1,"port":true}`,
		`{"size":1,"ratio":0}`, `{"size":1,"ratio":0.75}`, `{"size":1,"ratio":1.5}`, `{"size":1,"ratio":1}`,
		`{"size":1,"flag":"yes"}`, `{"size":1,"flag":null}`, `{"size":1,"maybe":null,"maybeDef":null}`, `{"size":1,"maybe":1}`,
		`{"size":1,"name":"a"}`, `{"size":1,"name":"abcdef"}`, `{"size":1,"name":"A1"}`, `{"size":1,"name":"ééé"}`,
		`{"size":1,"when":"yesterday"}`, `{"size":1,"when":"2001-01-01T00:00:00Z"}`, `{"size":1,"mail":"x"}`, `{"size":1,"mail":"a@b.c"}`,
		`{"size":1,"i32":2147483648}`, `{"size":1,"i64":9223372036854775807}`, `{"size":1,"i64":9223372036854775808}`, `{"size":1,"i64":1e30}`, `{"size":1,"i64":-9223372036854775809}`,
		`{"size":1,"bytes":"!!"}`, `{"size":1,"bytes":"aGk="}`, `{"size":1,"ip":"1.2.3"}`, `{"size":1,"ip":"1.2.3.4"}`, `{"size":1,"dur":"1h"}`, `{"size":1,"dur":"x"}`,
		`{"size":1,"parts":[]}`, `{"size":1,"parts":[{"name":"a"},{"name":"a"}]}`, `{"size":1,"parts":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`,
		`{"size":1,"parts":[{}]}`, `{"size":1,"parts":[{"name":"A","count":"x"}]}`, `{"size":1,"parts":[{"name":"a","tags":["x","x"]}]}`, `{"size":1,"parts":[null]}`, `{"size":1,"parts":{}}`,
		`{"size":1,"set":[1,2,1]}`, `{"size":1,"set":[1,2]}`, `{"size":1,"atoms":["a","a"]}`, `{"size":1,"uniq":[{"a":1},{"a":"x"}]}`,
		`{"size":1,"extra":{"known":"x","free":{"a":[1,null]}}}`, `{"size":1,"extra":null}`, `{"size":1,"limits":{"a":0}}`, `{"size":1,"limits":{"a":1,"b":2,"c":3,"d":4}}`, `{"size":1,"limits":{"a":null}}`,
		`{"size":1,"deep":{}}`, `{"size":1,"deep":{"a":null}}`, `{"size":1,"deep":null}`, `{"size":1,"deep":{"a":{"b":null}}}`, `{"size":1,"deep":{"a":{"b":"z"}}}`,
		`{"size":1,"embedded":{}}`, `{"size":1,"embedded":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","zz":1},"spec":{"x":1}}}`, `{"size":1,"embedded":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"A_"}}}`,
		`{"size":1,"embedded":{"apiVersion":"v1/v2/v3","kind":"Pod"}}`, `{"size":1,"embedded":{"apiVersion":"v1","kind":"Po d"}}`,
		`{"size":1,"one":{}}`, `{"size":1,"one":{"x":1}}`, `{"size":1,"one":{"x":1,"w":1}}`, `{"size":1,"any":{}}`, `{"size":1,"any":{"x":1,"z":2}}`,
		`[]`, `"x"`, `null`, `5`, `{"size":1,"color":["red"]}`, `{"size":true,"color":"x","name":"Q","parts":[],"ratio":-1}`,
		`{"size":1,"atomMap":{"a":"1","b":2}}`, `{"size":18446744073709551616}`,
	} {
		s.same(postWith("fieldValidation=Warn", widget(fmt.Sprint("s", i), ``, spec)))
		s.same(postWith("fieldValidation=Strict&dryRun=All", widget(fmt.Sprint("t", i), ``, spec)))
	}
	s.same(postWith("dryRun=All", widget("u", ``, `{"size":1,"parts":[1]}`)))
	s.differUnlessPassedOn("each item that an earlier one equals is an error", postWith("dryRun=All", widget("u", ``, `{"size":1,"set":[1,1,1]}`)))
	s.differUnlessPassedOn("a wrong type within an embedded resource is an error of its field", postWith("dryRun=All", widget("u", ``, `{"size":1,"embedded":{"apiVersion":1,"kind":"Pod"}}`)))
	s.same(postWith("dryRun=All", widget("u", ``, `{"size":1.0}`))) // which is not a number of replicas
}

// freeFields are things, which have whatever fields they are given.
func freeFields(s *script) {
	create := func(path, body string) request { return send("POST", path, "", body) }
	s.same(create(things, thing("t", ``, `,"a":{"b":[1,2,{"c":null}]},"n":12345678901234567890,"f":1.0,"e":1e3,"s":"é\u0000x"`)))
	s.same(get(things + "/t"))
	s.same(getAs("application/json;as=Table;v=v1;g=meta.k8s.io", things+"/t")) // which has the age alone
	s.same(create(things, thing("u", `,"namespace":"default"`, `,"metadata2":1`)))
	s.same(send("PUT", things+"/t", "", thing("t", ``, `,"a":1`)))
	s.same(send("PUT", things+"/t", "", thing("t", `,"resourceVersion":"$rv:t$"`, `,"a":1`)))
	s.same(send("PUT", things+"/w", "", thing("w", ``, `,"a":1`)))
	s.same(get(things + "?fieldSelector=metadata.name%3Dt"))
}

// updates replace widgets.
func updates(s *script) {
	for _, r := range []request{
		put("a", widget("a", ``, `{"size":5}`)), put("a", widget("a", `,"resourceVersion":"0"`, `{"size":5}`)), put("a", widget("b", ``, `{"size":5}`)), put("none", widget("none", ``, `{"size":5}`)),
		put("none", widget("none", `,"resourceVersion":"5"`, `{"size":1}`)), put("none", widget("none", `,"uid":"5"`, `{"size":1}`)),
		put("a", read("a", ``, `{"size":5}`)), put("a", read("a", ``, `{"size":5}`)), put("a", widget("a", `,"resourceVersion":"1"`, `{"size":6}`)),
		put("a", read("a", `,"uid":"5"`, `{"size":6}`)), put("a", read("a", `,"uid":"$uid:a$"`, `{"size":6}`)), put("a", read("a", `,"generation":77,"creationTimestamp":"2001-01-01T00:00:00Z"`, `{"size":6}`)),
		put("a?dryRun=All", read("a", `,"labels":{"a":"b"}`, `{"size":7}`)), put("a", read("a", `,"labels":{"a":"b"}`, `{"size":700}`)),
		put("a", read("a", `,"managedFields":[{}]`, `{"size":8}`)),
		put("a?fieldManager=mm", read("a", `,"managedFields":[{"manager":"x","operation":"Update","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:size":{}}}}]`, `{"size":9}`)),
		put("a", read("a", `,"managedFields":[{"manager":"x","operation":"Nope","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:size":{}}}}]`, `{"size":9}`)),
	} {
		s.same(r)
	}
	s.differUnlessPassedOn("a request that is wrong is not a failure of the server", put("a", widget("a", `,"resourceVersion":"x"`, `{"size":6}`)))
	s.differUnlessPassedOn("an empty list resets the managed fields, as for built-in kinds", put("a", read("a", `,"labels":{"a":"b"},"managedFields":[]`, `{"size":8}`)))
	s.align(put("a", read("a", `,"managedFields":[{}]`, `{"size":8}`)))
	s.differUnlessPassedOn("what the server sets is ignored, as it is of a creation", put("a?dryRun=All", read("a", `,"deletionTimestamp":"2001-01-01T00:00:00Z"`, `{"size":6}`)))
}

// subresources are writes and reads of the status and the scale.
func subresources(s *script) {
	status := func(more, status string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"%s},"spec":{"size":55},"status":%s}`, more, status)
	}
	scale := func(name, more string, replicas any) string {
		return fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":%q%s},"spec":{"replicas":%v}}`, name, more, replicas)
	}
	for _, r := range []request{
		put("a/status", status(`,"resourceVersion":"$rv:a$"`, `{"size":4,"selector":"a=b","zz":1}`)), put("a/status", status(`,"resourceVersion":"$rv:a$"`, `{"size":5}`)),
		put("a/status", status(`,"resourceVersion":"$rv:a$"`, `{"size":"x"}`)), put("a/status", status(``, `{"size":6}`)), get(widgets + "/a/status"),
		get(widgets + "/a/scale"), get(widgets + "/none/scale"), put("a/scale", scale("a", `,"namespace":"default"`, 3)), put("a/scale", scale("a", ``, 300)), put("a/scale", scale("b", ``, 3)),
		put("a/scale", scale("a", `,"resourceVersion":"1"`, 3)), put("a/scale", widget("a", ``, `{"size":5}`)), put("a/scale", `{}`),
		patch(mergePatch, "a/scale", `{"spec":{"replicas":7}}`), patch(jsonPatch, "a/scale", `[{"op":"replace","path":"/spec/replicas","value":8}]`),
		patch(mergePatch, "a/status", `{"spec":{"size":99},"status":{"size":98}}`), patch(mergePatch, "a", `{"status":{"size":99}}`),
	} {
		s.same(r)
	}
	s.differUnlessPassedOn("the error is of the field that the client has written", put("a/scale", scale("a", ``, -3)))
	s.differAtReplica("a replica sends the result, which its origin refuses as a body", patch(mergePatch, "a/scale", `{"spec":{"replicas":"x"}}`))
	s.differUnlessPassedOn("a conflict over a scale is one, and no failure of the server", applyTo("a/scale", "fieldManager=hpa", scale("a", ``, 9)))
	s.same(patch(mergePatch, "a/status", `{"metadata":{"labels":{"x":"z"},"finalizers":["a.b/c"]},"status":{"size":97}}`))
	s.same(applyTo("a/status", "fieldManager=st", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":{"no":"no"}},"status":{"selector":"x=y"}}`))
	s.same(get(widgets + "/a"))
}

// deletions delete widgets.
func deletions(s *script) {
	options := func(fields string) string { return `{"apiVersion":"v1","kind":"DeleteOptions",` + fields + `}` }
	for _, r := range []request{
		remove("none", ""), remove("a", options(`"preconditions":{"uid":"x"}`)), remove("a", options(`"preconditions":{"resourceVersion":"1"}`)),
		remove("a", options(`"preconditions":{"uid":"$uid:a$"},"dryRun":["All"]`)), remove("a", options(`"propagationPolicy":"Nope"`)),
		remove("a", options(`"orphanDependents":true,"propagationPolicy":"Orphan"`)), remove("a", options(`"gracePeriodSeconds":-1,"dryRun":["All"]`)),
		patch(mergePatch, "a", `{"metadata":{"finalizers":["a.b/c"]}}`), remove("a?propagationPolicy=Background", ""), get(widgets + "/a"), patch(mergePatch, "a", `{"spec":{"size":77}}`),
		patch(mergePatch, "a", `{"metadata":{"finalizers":["a.b/c","d.e/f"]}}`), patch(mergePatch, "a", `{"metadata":{"deletionTimestamp":null}}`),
		remove("a", ""), patch(mergePatch, "a", `{"metadata":{"finalizers":[]}}`), get(widgets + "/a"),
		remove("b2?gracePeriodSeconds=5", ""), remove("b2?gracePeriodSeconds=x", ""), remove("ap?dryRun=All", ""), remove("ap", `nope`), remove("ap", `{"kind":"Nope","apiVersion":"v1"}`),
		remove("ap", `{"kind":"DeleteOptions","apiVersion":"example.com/v1"}`), remove("", options(`"dryRun":["All"]`)),
		remove("?labelSelector=none%3Dnone", ""), remove("?fieldSelector=metadata.name%3Ds2", ""), remove("?dryRun=All&fieldSelector=metadata.name%3Ds8", ""),
		remove("?limit=1&fieldSelector=metadata.name%3Ds8", ""), remove("?fieldSelector=metadata.nope%3Ds9", ""), remove("?propagationPolicy=Nope", ""), remove("", ""), get(widgets),
		send("DELETE", things+"/t", "", ""), send("DELETE", things, "", ""), get(things),
	} {
		s.same(r)
	}
	for _, r := range []request{
		remove("a", options(`"orphanDependents":true,"propagationPolicy":"Nope"`)), remove("a?propagationPolicy=", ""),
		post(widget("o", ``, `{"size":1}`)), remove("o?propagationPolicy=Orphan&dryRun=All", ""), remove("o?propagationPolicy=Orphan", ""),
		remove("o", options(`"orphanDependents":true`)), get(widgets + "/o"),
		patch(mergePatch, "o", `{"metadata":{"finalizers":["foregroundDeletion","a.b/c"]}}`), patch(mergePatch, "o", `{"metadata":{"finalizers":null}}`), get(widgets + "/o"),
		post(widget("p", `,"finalizers":["a.b/c"]`, `{"size":1}`)), remove("p?orphanDependents=false", ""), remove("p", options(`"orphanDependents":false`)),
		patch(mergePatch, "p", `{"metadata":{"finalizers":null}}`), post(widget("p", ``, `{"size":1}`)), remove("p?orphanDependents=false", ""),
		post(widget("q", `,"finalizers":["orphan"]`, `{"size":1}`)),
	} {
		s.same(r)
	}
	const unreadable = `"ignoreStoreReadErrorWithClusterBreakingPotential":true`
	for _, r := range []request{
		remove("q", options(unreadable)), remove("q?ignoreStoreReadErrorWithClusterBreakingPotential=true", ""), remove("none", options(unreadable)), remove("", options(unreadable)),
		remove("q", options(unreadable+`,"gracePeriodSeconds":0,"propagationPolicy":"Background"`)), remove("q", options(unreadable+`,"preconditions":{"uid":"$uid:q$"}`)), remove("q?gracePeriodSeconds=", ""),
	} {
		s.same(r)
	}
	s.differ("a dry run is answered as what it tries", remove("q?propagationPolicy=Background&dryRun=All", ""))
	s.differ("the objects are shown as they are marked, and not as they were", remove("?propagationPolicy=Foreground", ""))
	s.same(get(widgets + "/q"))
	s.differUnlessPassedOn("a revision that is the object's is right, and not refused as all are", remove("q", options(`"propagationPolicy":"Background","preconditions":{"resourceVersion":"$rv:q$"}`)))
	s.align(patch(mergePatch, "q", `{"metadata":{"finalizers":null}}`))
	s.same(get(widgets))
}
