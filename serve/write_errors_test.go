package serve_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// An option that is wrong is a cause of its own type, as in Kubernetes.
func TestErrors_OfWriteOptions(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for _, c := range []struct{ method, path, body, media, want string }{
		{"POST", inDefault + "?dryRun=Some", `{}`, asJSON, "CreateOptions dryRun FieldValueNotSupported"},
		{"PUT", inDefault + "/a?fieldValidation=Loose", `{}`, asJSON, "UpdateOptions fieldValidation FieldValueNotSupported"},
		{"PATCH", inDefault + "/a?fieldManager=%01", `{}`, mergePatch, "PatchOptions fieldManager FieldValueInvalid"},
		{"PATCH", inDefault + "/a?force=true", `{}`, mergePatch, "PatchOptions force FieldValueForbidden"},
		{"PATCH", inDefault + "/a?force=false", `[]`, jsonPatch, "PatchOptions force FieldValueForbidden"},
		{"DELETE", inDefault + "/a?dryRun=", "", asJSON, "DeleteOptions dryRun FieldValueNotSupported"},
		{"DELETE", inDefault + "/a", `{"propagationPolicy":"Up"}`, asJSON, "DeleteOptions propagationPolicy FieldValueNotSupported"},
		{"DELETE", inDefault + "?propagationPolicy=Orphan&orphanDependents=true", "", asJSON, "DeleteOptions propagationPolicy FieldValueInvalid"},
	} {
		a := s.do(c.method, c.path, c.body, "Content-Type", c.media)
		require.Equal(t, "422 "+c.want, fmt.Sprintf("%d %s %s %s", a.code, a.str("details.kind"), a.str("details.causes.0.field"), a.str("details.causes.0.reason")), a.body)
	}
	require.Equal(t, 200, s.get(inDefault+"/a").code)
}

func TestErrors_OfWrites(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Limits.BodyBytes = 4096 })
	s.create("a", 1)
	for _, c := range []struct{ method, path, body, media, want string }{
		{"POST", inDefault, `{"metadata":{"name":"a"}}`, "", "409 AlreadyExists"},
		{"POST", inDefault, `{"metadata":{"name":"b"},"spec":{"size":-1}}`, "", "422 Invalid"},
		{"POST", inDefault, `{"metadata":{"name":"B"}}`, "", "422 Invalid"},
		{"POST", inDefault, `{"metadata":{"name":"b","namespace":"other"}}`, "", "400 BadRequest"},
		{"POST", inDefault, `{"metadata":{"name":"b","resourceVersion":"5"}}`, "", "400 BadRequest"},
		{"POST", inDefault, `{"metadata":`, "", "400 BadRequest"},
		{"POST", inDefault, `{}`, "application/vnd.kubernetes.protobuf", "415 UnsupportedMediaType"},
		{"POST", inDefault, `{}`, "application/yaml", "415 UnsupportedMediaType"},
		{"POST", inDefault, strings.Repeat(" ", 5000), "", "413 RequestEntityTooLarge"},
		{"POST", inDefault + "?dryRun=Some", `{}`, "", "422 Invalid"},
		{"POST", inDefault + "?fieldValidation=Loose", `{}`, "", "422 Invalid"},
		{"POST", inDefault + "?fieldManager=" + strings.Repeat("x", 129), `{}`, "", "422 Invalid"},
		{"POST", inDefault + "/a", `{}`, "", "405 MethodNotAllowed"},
		{"POST", allWidgets, `{"metadata":{"name":"b"}}`, "", "405 MethodNotAllowed"},
		{"POST", allWidgets + "/b", `{"metadata":{"name":"b"}}`, "", "404 NotFound"},
		{"POST", inDefault, `{"metadata":{"name":"b"},"spec":{"size":666}}`, "", "500 InternalError"},
		{"PUT", inDefault + "/a", `{"metadata":{"name":"b"}}`, "", "400 BadRequest"},
		{"PUT", inDefault + "/b", `{"metadata":{"name":"b"}}`, "", "404 NotFound"},
		{"PUT", inDefault + "/a", `{"metadata":{"name":"a","uid":"other"}}`, "", "409 Conflict"},
		{"PUT", inDefault, `{}`, "", "405 MethodNotAllowed"},
		{"PATCH", inDefault + "/a", `{}`, "application/strategic-merge-patch+json", "415 UnsupportedMediaType"},
		{"PATCH", inDefault + "/a", `{}`, "", "415 UnsupportedMediaType"},
		{"PATCH", inDefault + "/a", `[{"op":"test","path":"/spec/size","value":5}]`, jsonPatch, "422 Invalid"},
		{"PATCH", inDefault + "/a", `{}`, jsonPatch, "400 BadRequest"},
		{"PATCH", inDefault + "/a", `{"spec":{"size":"x"}}`, mergePatch, "422 Invalid"},
		{"PATCH", inDefault + "/a", `{"metadata":{"resourceVersion":"9999999"},"spec":{"size":2}}`, mergePatch, "409 Conflict"},
		{"PATCH", inDefault + "/none", `{}`, mergePatch, "404 NotFound"},
		{"PATCH", inDefault + "/a?force=true", `{}`, mergePatch, "422 Invalid"},
		{"DELETE", inDefault + "/a", `{"kind":"Widget"}`, "", "400 BadRequest"},
		{"DELETE", inDefault + "/a?gracePeriodSeconds=x", "", "", "400 BadRequest"},
		{"DELETE", inDefault + "/a/status", "", "", "405 MethodNotAllowed"},
		{"POST", "/version", "", "", "405 MethodNotAllowed"},
		{"TRACE", inDefault, "", "", "405 MethodNotAllowed"},
	} {
		headers := []string{}
		if c.media != "" {
			headers = []string{"Content-Type", c.media}
		}
		a := s.do(c.method, c.path, c.body, headers...)
		require.Equal(t, c.want, fmt.Sprintf("%d %s", a.code, a.str("reason")), "%s %s %s: %s", c.method, c.path, c.body, a.body)
	}
	compressed := s.do("POST", inDefault, `{}`, "Content-Encoding", "gzip")
	require.Equal(t, 415, compressed.code)
	require.Equal(t, `the body has the Content-Encoding "gzip": send it without one`, compressed.str("message"))
	require.Equal(t, 422, s.do("POST", inDefault, `{}`, "Content-Encoding", "identity").code)
	invalid := s.do("POST", inDefault, `{"metadata":{"name":"b"},"spec":{"size":-1}}`)
	require.Equal(t, "Widget example.com spec.size FieldValueInvalid", strings.Join([]string{
		invalid.str("details.kind"), invalid.str("details.group"), invalid.str("details.causes.0.field"), invalid.str("details.causes.0.reason"),
	}, " "))
	require.Equal(t, "1", s.get(inDefault+"/a").str("spec.size"), "nothing of this has changed the object")
}

// An answer 405 lists the methods that there are.
func TestErrors_OfAMethodListWhatThePathHas(t *testing.T) {
	s := newServer(t)
	for _, c := range []struct{ method, path, allow, message string }{
		{"PUT", inDefault, "DELETE, GET, HEAD, POST", `put is not supported on resources of kind "widgets.example.com"`},
		{"OPTIONS", inDefault, "DELETE, GET, HEAD, POST", `options is not supported on resources of kind "widgets.example.com"`},
		{"POST", allWidgets, "GET, HEAD", `post is not supported on resources of kind "widgets.example.com"`},
		{"OPTIONS", allWidgets, "GET, HEAD", `options is not supported on resources of kind "widgets.example.com"`},
		{"DELETE", allWidgets, "GET, HEAD", `delete is not supported on resources of kind "widgets.example.com"`},
		{"PUT", "/apis/example.com/v1/zones", "DELETE, GET, HEAD, POST", `put is not supported on resources of kind "zones.example.com"`},
		{"POST", inDefault + "/a", "DELETE, GET, HEAD, PATCH, PUT", `post is not supported on resources of kind "widgets.example.com"`},
		{"DELETE", inDefault + "/a/status", "GET, HEAD, PATCH, PUT", `delete is not supported on resources of kind "widgets.example.com"`},
		{"POST", "/version", "GET, HEAD", "POST is not supported on /version: send GET or HEAD"},
		{"DELETE", "/apis/example.com", "GET, HEAD", "DELETE is not supported on /apis/example.com: send GET or HEAD"},
		{"POST", "/healthz", "GET, HEAD", "POST is not supported on /healthz: send GET or HEAD"},
	} {
		a := s.do(c.method, c.path, "")
		require.Equal(t, 405, a.code, c.path)
		require.Equal(t, c.allow, a.header.Get("Allow"), c.path)
		require.Equal(t, c.message, a.str("message"))
	}
}

// A method that is spelled like a verb is none: DELETECOLLECTION of one object would delete all.
func TestErrors_OfMethodsThatAreSpelledLikeVerbs(t *testing.T) {
	var allowed []string
	s := newServer(t, func(_ *registry.Config[Widget], cfg *serve.Config) {
		cfg.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			allowed = append(allowed, r.Verb)
			return nil
		}
	})
	s.create("a", 1)
	s.create("b", 1)
	body := `{"metadata":{"name":"a"},"spec":{"size":2}}`
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		for _, method := range []string{verb, strings.ToUpper(verb)} {
			if method == "GET" || method == "PATCH" || method == "DELETE" {
				continue
			}
			for _, path := range []string{inDefault, inDefault + "/a"} {
				allowed = nil
				a := s.do(method, path, body)
				require.Equal(t, 405, a.code, "%s %s", method, path)
				require.Equal(t, "MethodNotAllowed", a.str("reason"))
				require.Equal(t, []string{""}, allowed)
			}
		}
	}
	list := s.get(inDefault)
	require.Equal(t, "a 1 b", list.str("items.0.metadata.name")+" "+list.str("items.0.spec.size")+" "+list.str("items.1.metadata.name"))
}
