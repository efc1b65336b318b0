package apiextensions

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where the kinds are.
const (
	widgets = "/apis/example.com/v1/namespaces/default/widgets"
	things  = "/apis/example.com/v1/things"
	gears   = "/apis/example.com/v1/namespaces/default/gears"
)

// The media types of bodies.
const (
	plainJSON  = "application/json"
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// script sends requests to both servers, one after the other, and keeps what is wrong with
// their answers.
type script struct {
	*testing.T
	*pair
	wrong []string
	sent  int
	// replica: ours is a replica of another of Kubernetes' servers, so that it answers alike what it
	// passes on.
	replica bool
}

// same sends a request that must be answered alike.
func (s *script) same(r request) {
	s.Helper()
	original, ours := s.ask(s.T, r)
	if s.sent++; original != ours {
		s.wrong = append(s.wrong, fmt.Sprintf("%s %s %s\n%s", r.method, r.path, r.body, difference(original, ours)))
	}
}

// differ sends a request that is answered differently, and says why.
func (s *script) differ(why string, r request) {
	s.Helper()
	original, ours := s.ask(s.T, r)
	if s.sent++; original == ours {
		s.wrong = append(s.wrong, fmt.Sprintf("%s %s %s\n  is answered alike, and the script says: %s", r.method, r.path, r.body, why))
	}
}

// differUnlessPassedOn is differ for a request that a replica passes on, so that it answers as its origin.
func (s *script) differUnlessPassedOn(why string, r request) {
	s.Helper()
	if s.replica {
		s.same(r)
	} else {
		s.differ(why, r)
	}
}

// differAtReplica is same for a request that a replica answers differently, and says why.
func (s *script) differAtReplica(why string, r request) {
	s.Helper()
	if s.replica {
		s.differ(why, r)
	} else {
		s.same(r)
	}
}

// align sends a request that makes the objects of both servers alike again. The answers may differ:
// an object that only one of them has is deleted, say.
func (s *script) align(r request) {
	s.Helper()
	s.ask(s.T, r)
}

// difference returns the lines that only one of the answers has.
func difference(original, ours summary) string {
	of := func(a summary) []string {
		return append([]string{fmt.Sprintf("status %d", a.code)}, strings.Split(strings.TrimSpace(a.text), "\n")...)
	}
	var out strings.Builder
	only := func(whose string, lines, others []string) {
		count := map[string]int{}
		for _, line := range others {
			count[strings.TrimSuffix(line, ",")]++
		}
		for _, line := range lines {
			if line = strings.TrimSuffix(line, ","); count[line] == 0 {
				fmt.Fprintf(&out, "  %-10s %s\n", whose, line)
			} else {
				count[line]--
			}
		}
	}
	only("Kubernetes", of(original), of(ours))
	only("ours", of(ours), of(original))
	return out.String()
}

// send is a request with a body of a media type; "" is JSON, for what is not a patch.
func send(method, path, media, body string) request {
	return request{method: method, path: path, body: body, headers: http.Header{"Content-Type": {cmp.Or(media, plainJSON)}}}
}

func get(path string) request { return request{method: http.MethodGet, path: path} }

// getAs is get for a client that accepts these media types.
func getAs(accept, path string) request {
	return request{method: http.MethodGet, path: path, headers: http.Header{"Accept": {accept}}}
}

func post(body string) request { return send(http.MethodPost, widgets, "", body) }

func postWith(query, body string) request { return send(http.MethodPost, widgets+"?"+query, "", body) }

// put replaces a widget, or a subresource of it.
func put(name, body string) request { return send(http.MethodPut, widgets+"/"+name, "", body) }

func patch(media, name, body string) request {
	return send(http.MethodPatch, widgets+"/"+name, media, body)
}

// applyTo applies a configuration to a widget, or to a subresource of it.
func applyTo(name, query, body string) request { return patch(applyPatch, name+"?"+query, body) }

func remove(name, options string) request {
	return send(http.MethodDelete, widgets+"/"+name, "", options)
}

// widget is a widget's JSON. more are fields of its metadata besides the name.
func widget(name, more, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q%s},"spec":%s}`, name, more, spec)
}

// read is widget with the resourceVersion that the server last returned.
func read(name, more, spec string) string {
	return widget(name, `,"resourceVersion":"$rv:`+name+`$"`+more, spec)
}

func thing(name, more, fields string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":%q%s}%s}`, name, more, fields)
}

func TestScript_IsAnsweredAsByKubernetes(t *testing.T) {
	t.Parallel()
	s := &script{T: t, pair: newPair(t)}
	for _, part := range []func(*script){discovery, creations, schemas, freeFields, jsonPatches, reads, watches, forms, updates, subresources, mergePatches, applies, deletions, rules} {
		part(s)
	}
	require.Empty(t, strings.Join(s.wrong, "\n"))
	require.Greater(t, s.sent, 400)
}
