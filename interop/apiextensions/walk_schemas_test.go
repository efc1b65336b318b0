package apiextensions

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is written while the schemas change, both show it alike: first in one version, with
// server-side apply, and then in two, of which either may be stored, and either not served.
func TestWalk_OfSchemasIsAnsweredAsByKubernetes(t *testing.T) {
	t.Parallel()
	e := newEvolving(t)
	n, _ := walks(t)
	same, sent := 0, 0
	for versions := range 2 {
		if versions == 1 {
			e.without = "managedFields" // a write in one version drops those of the others here
		}
		for seed := range n {
			w := &schemaWalk{walk: &walk{Rand: rand.New(rand.NewPCG(uint64(seed), 1))}, versions: []aVersion{{name: "v1"}, {name: "v2"}}[:versions+1]}
			w.play(e, fmt.Sprintf("seed %d of %d versions", seed, versions+1))
			same, sent = same+w.same, sent+w.sent
		}
	}
	require.Greater(t, same, sent*9/10)
}

// schemaWalk draws definitions of tries, and requests for them.
type schemaWalk struct {
	*walk
	versions []aVersion
	// sent is how many requests it has sent, and same how many of these were answered alike.
	same, sent int
}

// play changes the definition a few times, with requests in between.
func (w *schemaWalk) play(e *evolving, about string) {
	e.Helper()
	for range 6 {
		w.change()
		e.define(w.versions...)
		for i := range 15 {
			for _, r := range w.requests() {
				original, ours := e.ask(e.T, r)
				w.sent++
				switch {
				case original == ours:
					w.same++
				case misfits(original, ours):
				case empties(r, original, ours):
					e.align(send(http.MethodDelete, triesIn(w.served()), "", ``))
				default:
					require.Fail(e, "answered differently", "%s, request %d after %+v: %s %s %s\n%s", about, i, w.versions, r.method, r.path, r.body, difference(original, ours))
				}
			}
		}
	}
	for _, v := range w.versions {
		if v.served {
			e.reads(v.name, names...)
		}
	}
	require.Empty(e, e.wrong, "%s, at the end", about)
	e.align(send(http.MethodDelete, triesIn(w.served()), "", ``))
}

// change draws the schemas of the versions, which one is stored, and which are served.
func (w *schemaWalk) change() {
	stored, unserved := w.IntN(len(w.versions)), w.IntN(2*len(w.versions))
	for i := range w.versions {
		v := &w.versions[i]
		v.storage, v.served = i == stored, i != unserved || len(w.versions) == 1
		v.spec = w.properties("a", "b", "c", "d", "e")
	}
}

// properties draws the properties of an object, after a comma, of these names.
func (w *schemaWalk) properties(names ...string) string {
	var all strings.Builder
	for _, name := range names {
		if w.chance(0.75) {
			fmt.Fprintf(&all, `,%q:{%s%s}`, name, w.schema(name), pick(w.walk, ``, ``, `,"nullable":true`))
		}
	}
	return all.String()
}

// schema draws the schema of a property, whose type follows from its name.
func (w *schemaWalk) schema(name string) string {
	// Kubernetes does not warn of unknown fields that are applied to an object without properties.
	inner := func() string { return `"properties":{"z":{"type":"string"}` + w.properties("a", "b") + `}` }
	switch name {
	case "a":
		return `"type":"string"` + pick(w.walk, ``, `,"default":"one"`, `,"default":"two"`)
	case "b":
		return `"type":"integer"` + pick(w.walk, ``, `,"default":1`, `,"default":2`)
	case "c":
		return `"type":"object",` + inner() + pick(w.walk, ``, `,"default":{}`)
	case "d":
		return `"type":"array","items":{"type":"object",` + inner() + `}` + pick(w.walk, ``, `,"default":[{}]`, `,"default":[]`)
	}
	return `"type":"object","additionalProperties":{"type":"object",` + inner() + `}` + pick(w.walk, ``, `,"default":{"k":{}}`)
}

// requests draws a request, or a write with the question whether it has changed the revision.
func (w *schemaWalk) requests() []request {
	version := w.served()
	at, name := triesIn(version), pick(w.walk, names...)
	of := func(rest string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Try","metadata":{"name":%q%s},"spec":%s}`, version, name, rest, text(w.spec()))
	}
	read := get(at + "/" + name)
	unchanged := send(http.MethodDelete, at+"/"+name+"?dryRun=All", "", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"$rv:`+name+`$"}}`)
	switch w.IntN(10) {
	case 0, 1, 2:
		return []request{send(http.MethodPost, at+pick(w.walk, "", "", "", "?dryRun=All"), "", of(``))}
	case 3:
		return []request{read, send(http.MethodPut, at+"/"+name, "", of(`,"resourceVersion":"$rv:`+name+`$"`)), read}
	case 4:
		return []request{send(http.MethodPatch, at+"/"+name+pick(w.walk, "", "?dryRun=All"), mergePatch, `{"spec":`+text(w.spec())+`}`), read}
	case 5: // which shows whether a patch that does nothing is stored
		return []request{read, send(http.MethodPatch, at+"/"+name+"?dryRun=All", mergePatch, `{}`), unchanged, send(http.MethodPatch, at+"/"+name, mergePatch, `{}`), unchanged}
	case 6:
		if len(w.versions) == 1 {
			config := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Try","metadata":{"name":%q},"spec":%s}`, name, text(full(w.spec())))
			return []request{send(http.MethodPatch, at+"/"+name+"?force=true&fieldManager="+pick(w.walk, "m1", "m2"), applyPatch, config)}
		}
	case 7:
		return []request{send(http.MethodDelete, at+"/"+name, "", ``)}
	case 8:
		return []request{get(at), get(at + "?resourceVersion=0")}
	}
	return []request{read}
}

// served draws a version that is served.
func (w *schemaWalk) served() string {
	for {
		if v := pick(w.walk, w.versions...); v.served {
			return v.name
		}
	}
}

// spec draws the spec of a try.
func (w *schemaWalk) spec() object {
	inner := func() any {
		o := object{}
		set[any](w.walk, o, "a", 0.4, "x", "y", nil)
		set[any](w.walk, o, "b", 0.4, 7, nil)
		return o
	}
	s := object{}
	set[any](w.walk, s, "a", 0.5, "x", "y", nil)
	set[any](w.walk, s, "b", 0.5, 7, 8, nil)
	set(w.walk, s, "c", 0.6, inner(), inner(), nil)
	set[any](w.walk, s, "d", 0.6, []any{inner(), inner()}, []any{inner()}, []any{}, nil)
	set[any](w.walk, s, "e", 0.6, object{"k": inner(), "l": inner()}, object{"l": inner()}, nil)
	return s
}
