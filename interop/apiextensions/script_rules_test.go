package apiextensions

import (
	"fmt"
	"strings"
)

// in returns a request for widgets as one for objects of another kind, which has that path.
func in(kind string, r request) request {
	r.path = strings.Replace(r.path, widgets, kind, 1)
	return r
}

// gearOf is a gear's JSON. more are fields of its metadata besides the name, and rest are those
// beside the spec.
func gearOf(name, more, spec, rest string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"name":%q%s},"spec":%s%s}`, name, more, spec, rest)
}

// rules are writes of gears, which have rules in CEL.
func rules(s *script) {
	same := func(r request) { s.Helper(); s.same(in(gears, r)) }
	for _, spec := range []string{
		`{}`, `{"teeth":1}`, `{"teeth":"1"}`, `{"teeth":101}`, `{"teeth":2,"left":"a"}`, `{"teeth":2,"left":null}`, `{"teeth":1,"left":"a","right":"b"}`, `{"teeth":1,"right":"long"}`,
		`{"teeth":2,"metal":"gold"}`, `{"teeth":1,"metal":"gold"}`, `{"teeth":2,"age":1}`, `{"teeth":2,"age":0}`, `{"teeth":2,"port":0}`, `{"teeth":2,"port":"x"}`, `{"teeth":2,"port":"xy"}`, `{"teeth":2,"port":true}`,
		`{"teeth":2,"when":"1999-01-01T00:00:00Z"}`, `{"teeth":2,"when":"2001-01-01T00:00:00Z"}`, `{"teeth":2,"when":"never"}`, `{"teeth":2,"ratio":1}`, `{"teeth":2,"ratio":2}`, `{"teeth":2,"ratio":1.75}`,
		`{"teeth":2,"parts":[{"name":"a","wear":9}]}`, `{"teeth":2,"parts":[{"name":"a"},{"name":"a"}]}`, `{"teeth":3,"parts":[{}]}`, `{"teeth":3,"tags":["a","a"]}`,
		`{"teeth":2,"limits":{"a":0}}`, `{"teeth":2,"limits":{"a":9,"b":1,"c":10}}`, `{"teeth":2,"free":{"a":3,"b":[null]}}`, `{"teeth":2,"free":{"b":1}}`,
		`{"teeth":2,"embedded":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}}`, `{"teeth":2,"embedded":{"apiVersion":"v1","kind":"Pod"}}`, `{"teeth":2,"embedded":{"kind":"Job"}}`,
		`{"teeth":2,"__odd-name":1}`, `{"teeth":2,"__odd-name":2}`, `{"teeth":2,"sizes":[1` + strings.Repeat(",1", 99) + `]}`, `{"teeth":2,"sizes":[1` + strings.Repeat(",1", 499) + `]}`,
	} {
		same(postWith("dryRun=All", gearOf("a", ``, spec, ``)))
	}
	same(post(gearOf("long", ``, `{"teeth":2}`, ``)))
	same(post(gearOf("a", ``, `{"teeth":8,"metal":"tin","age":0,"parts":[{"name":"a","wear":2},{"name":"b","wear":1}],"tags":["x"]}`, `,"status":{"teeth":9}`)))
	replace := func(spec string) request { return put("a", gearOf("a", `,"resourceVersion":"$rv:a$"`, spec, ``)) }
	for _, spec := range []string{
		`{"teeth":8,"metal":"lead"}`, `{"teeth":8}`, `{"teeth":8,"metal":"tin"}`, `{"teeth":8,"metal":"tin","tags":["y","x"],"parts":[{"name":"b","wear":1},{"name":"a","wear":2}]}`,
		`{"teeth":8,"metal":"tin","tags":["y"]}`, `{"teeth":8,"metal":"tin","tags":["y","x"],"parts":[{"name":"c","wear":0},{"name":"b","wear":0}]}`, `{"teeth":7,"metal":"zinc","tags":[]}`,
		`{"teeth":8,"metal":"tin","tags":["y","x"],"age":0}`, `{"teeth":8,"metal":"tin","tags":["y","x"],"age":5}`, `{"teeth":8,"metal":"tin","tags":["y","x"],"age":4}`,
	} {
		same(replace(spec))
	}
	for _, body := range []string{`{"status":{"teeth":9}}`, `{"status":{"teeth":7}}`, `{"status":{}}`, `{"status":null}`, `{"status":{"teeth":8}}`} {
		same(patch(mergePatch, "a/status", body))
	}
	for _, body := range []string{`{"spec":{"teeth":6}}`, `{"spec":{"teeth":9}}`, `{"spec":{"teeth":10,"age":null}}`, `{"spec":{"age":3}}`, `{"spec":{"age":0,"metal":null}}`, `{"metadata":{"labels":{"a":"b"}}}`} {
		same(patch(mergePatch, "a", body))
	}
	same(patch(jsonPatch, "a", `[{"op":"replace","path":"/spec/teeth","value":11}]`))
	same(applyTo("a", "fieldManager=me&force=true", gearOf("a", ``, `{"teeth":11}`, ``)))
	same(applyTo("a", "fieldManager=me&force=true", gearOf("a", ``, `{"teeth":12,"metal":"zinc"}`, ``)))
	same(applyTo("a", "fieldManager=me&force=true", gearOf("a", ``, `{"teeth":12}`, ``)))
	same(applyTo("b", "fieldManager=me", gearOf("b", ``, `{"teeth":11}`, ``)))
	same(applyTo("a/status", "fieldManager=me&force=true", `{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"name":"a"},"status":{"teeth":13}}`))
	for _, path := range []string{widgets, widgets + "/a", widgets + "/a/status"} {
		same(getAs("application/json;as=Table;v=v1;g=meta.k8s.io", path)) // which have no column Age
	}
	same(remove("a", ""))
}
