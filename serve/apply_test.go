package serve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/serve"
)

const applyPatch = "application/apply-patch+yaml"

// withApply gives widgets server-side apply.
func withApply(w *registry.Config[Widget], _ *serve.Config) { w.Apply = apply.New }

// apply applies a configuration of the widget a; query begins with a question mark.
func (s *server) apply(query, spec string, headers ...string) answer {
	s.t.Helper()
	text := "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec: " + spec + "\n"
	return s.do("PATCH", inDefault+"/a"+query, text, append([]string{"Content-Type", applyPatch}, headers...)...)
}

func TestApply_CreatesChangesAndConflicts(t *testing.T) {
	s := newServer(t, withApply)
	w := s.watch(inDefault + "?watch=1")
	a := s.apply("?fieldManager=one", "{size: 1, color: red}")
	require.Equal(t, "201 a one Apply", fmt.Sprintf("%d %s %s %s", a.code, a.str("metadata.name"), a.str("metadata.managedFields.0.manager"), a.str("metadata.managedFields.0.operation")), a.body)
	w.expect("ADDED a")
	same := s.apply("?fieldManager=one", "{size: 1, color: red}")
	require.Equal(t, "200 "+a.str("metadata.resourceVersion"), fmt.Sprintf("%d %s", same.code, same.str("metadata.resourceVersion")), "no event")
	no := s.apply("?fieldManager=two", "{size: 2}")
	require.Equal(t, `409 Conflict FieldManagerConflict .spec.size conflict with "one"`, fmt.Sprintf("%d %s %s %s %s", no.code, no.str("reason"),
		no.str("details.causes.0.reason"), no.str("details.causes.0.field"), no.str("details.causes.0.message")))
	require.Equal(t, `Apply failed with 1 conflict: conflict with "one": .spec.size`, no.str("message"))
	dry := s.apply("?fieldManager=two&force=true&dryRun=All", "{size: 2}")
	require.Equal(t, "200 2", fmt.Sprintf("%d %s", dry.code, dry.str("spec.size")))
	yes := s.apply("?fieldManager=two&force=true", "{size: 2}")
	require.Equal(t, "200 2 red", fmt.Sprintf("%d %s %s", yes.code, yes.str("spec.size"), yes.str("spec.color")))
	w.expect("MODIFIED a")
	stale := s.do("PATCH", inDefault+"/a?fieldManager=two", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"`+a.str("metadata.resourceVersion")+`"},"spec":{"size":3}}`, "Content-Type", applyPatch)
	require.Equal(t, "409 Conflict", fmt.Sprintf("%d %s", stale.code, stale.str("reason")))
	require.Contains(t, stale.str("message"), "the object has been modified")
	require.Equal(t, "2", s.get(inDefault+"/a").str("spec.size"))
}

func TestApply_OtherWritesAreRecordedUnderTheirManager(t *testing.T) {
	s := newServer(t, withApply)
	managers := func(a answer) string {
		t.Helper()
		require.Less(t, a.code, 300, a.body)
		return strings.Join([]string{
			a.str("metadata.managedFields.0.manager"), a.str("metadata.managedFields.0.operation"), a.str("metadata.managedFields.0.subresource"),
			a.str("metadata.managedFields.1.manager"),
		}, " ")
	}
	created := s.do("POST", inDefault, `{"metadata":{"name":"a"},"spec":{"size":1}}`, "User-Agent", "tool\u00a0name/1.2 (linux)")
	require.Equal(t, "toolname Update <nil> <none>", managers(created))
	put := s.do("PUT", inDefault+"/a?fieldManager=editor", `{"metadata":{"name":"a","managedFields":[{}]},"spec":{"size":1}}`)
	require.Equal(t, "<nil>", put.str("metadata.managedFields"), "a client can take the record back")
	require.Equal(t, 200, s.apply("?fieldManager=one", "{color: red}").code)
	merged := s.do("PATCH", inDefault+"/a?fieldManager=patcher", `{"spec":{"color":"blue"}}`, "Content-Type", mergePatch)
	require.Equal(t, "before-first-apply Update <nil> patcher", managers(merged), "one has lost all that it had")
	status := s.do("PATCH", inDefault+"/a/status?fieldManager=wheel", `[{"op":"replace","path":"/status","value":{"phase":"Up"}}]`, "Content-Type", jsonPatch)
	require.Contains(t, status.body, `"manager":"wheel","operation":"Update","apiVersion":"example.com/v1"`)
	require.Contains(t, status.body, `"fieldsV1":{"f:status":{"f:phase":{}}},"subresource":"status"`)
	applied := s.do("PATCH", inDefault+"/a/status?fieldManager=axle&force=1", `{"apiVersion":"example.com/v1","kind":"Widget","status":{"phase":"Down"}}`, "Content-Type", applyPatch)
	require.Equal(t, "200 Down 1", fmt.Sprintf("%d %s %s", applied.code, applied.str("status.phase"), applied.str("spec.size")))
	long := s.do("POST", inDefault, `{"metadata":{"name":"b"},"spec":{"size":1}}`, "User-Agent", strings.Repeat("ä", 200))
	require.Equal(t, strings.Repeat("ä", 64), long.str("metadata.managedFields.0.manager"))
}

func TestApply_WhatIsWrongIsToldAsIt(t *testing.T) {
	s := newServer(t, withApply, func(_ *registry.Config[Widget], c *serve.Config) { c.Limits.BodyBytes = 4 << 10 })
	require.Equal(t, 201, s.apply("?fieldManager=one", "{size: 1}").code)
	const head = `{"apiVersion":"example.com/v1","kind":"Widget",`
	for _, c := range []struct{ query, body, want string }{
		{"", head + `"spec":{}}`, "422 Invalid fieldManager: Required value: is required for apply patch"},
		{"?fieldManager=" + strings.Repeat("x", 129), head + `"spec":{}}`, "422 Invalid fieldManager"},
		{"?fieldManager=one&dryRun=Some", head + `"spec":{}}`, "422 Invalid dryRun"},
		{"?fieldManager=one", "spec: [", "400 BadRequest the configuration does not parse"},
		{"?fieldManager=one", "", "400 BadRequest the configuration does not parse: it is empty"},
		{"?fieldManager=one", strings.Repeat("[", 2000), "400 BadRequest the configuration does not parse"},
		{"?fieldManager=one", head + `"spec":` + strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200) + "}", "400 BadRequest the configuration is nested more than 100 deep"},
		{"?fieldManager=one", bomb(), "400 BadRequest the configuration does not parse: yaml: document contains excessive aliasing"},
		{"?fieldManager=one", `{"kind":"Widget"}`, "400 BadRequest the configuration must have apiVersion: example.com/v1 and kind: Widget; it has none and Widget"},
		{"?fieldManager=one", head + `"metadata":{"managedFields":[]}}`, "400 BadRequest metadata.managedFields must not be in a configuration"},
		{"?fieldManager=one", head + `"spec":{"colour":"red"}}`, "400 BadRequest the configuration does not fit the schema of Widget: .spec.colour: field not declared in schema"},
		{"?fieldManager=one", head + `"spec":{"size":"big"}}`, "400 BadRequest the configuration does not fit the schema"},
		{"?fieldManager=one", head + `"spec":{"size":-1}}`, "422 Invalid spec.size: Invalid value: -1: must not be negative"},
		{"?fieldManager=one", head + `"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x"}]}}`, "422 Invalid metadata.ownerReferences[0].uid: Required value: must not be empty"},
		{"?fieldManager=one", head + `"spec":{"size":1,"size":1}}` + strings.Repeat(" ", 5000), "413 RequestEntityTooLarge limit is 4096 bytes"},
		{"?fieldManager=one&fieldValidation=Strict", head + `"spec":{"size":1,"size":1}}`, "400 BadRequest strict decoding error: duplicate field \"spec.size\""},
		{"?fieldManager=one", head + `"spec":{"size":666}}`, "500 InternalError the number of the beast"},
	} {
		a := s.do("PATCH", inDefault+"/a"+c.query, c.body, "Content-Type", applyPatch)
		outcome := fmt.Sprintf("%d %s", a.code, a.str("reason"))
		text, ok := strings.CutPrefix(c.want, outcome)
		require.True(t, ok, "%s: %s", c.body, a.body)
		require.Contains(t, a.str("message"), strings.TrimSpace(text), c.body)
	}
	require.Equal(t, 422, s.do("PATCH", inDefault+"/a?force=true&fieldManager=one", `{}`, "Content-Type", mergePatch).code)
	require.Equal(t, 404, s.do("PATCH", inDefault+"/b/status?fieldManager=one", head+`"status":{"phase":"Up"}}`, "Content-Type", applyPatch).code)
}

// bomb is YAML that would be gigabytes without its aliases.
func bomb() string {
	text := "a0: &a0 [" + strings.Repeat("x,", 20) + "]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 20))
	}
	return text
}

func TestApply_WithoutItThePatchIsAnUnknownFormat(t *testing.T) {
	s := newServer(t)
	a := s.apply("?fieldManager=one", "{size: 1}")
	require.Equal(t, "415 UnsupportedMediaType", fmt.Sprintf("%d %s", a.code, a.str("reason")))
	require.NotContains(t, a.str("message"), applyPatch+",")
	s = newServer(t, withApply)
	other := s.do("PATCH", inDefault+"/a", `{}`, "Content-Type", "application/strategic-merge-patch+json")
	require.Equal(t, 415, other.code)
	require.Contains(t, other.str("message"), applyPatch)
}

// The clients of Kubernetes that prefer CBOR send the next patch in another format only after this answer.
func TestApply_InAFormatThatIsNotKnownIsAnsweredAsOne(t *testing.T) {
	a := newServer(t, withApply).do("PATCH", inDefault+"/a?fieldManager=m&force=true", "", "Content-Type", "application/apply-patch+cbor")
	require.Equal(t, "415 UnsupportedMediaType", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
	require.Contains(t, a.str("message"), `("application/apply-patch+cbor")`)
}

// A kind that has them takes strategic merge patches, of its status, too.
func TestPatch_Strategic(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.StrategicMerge = strategic.New })
	s.create("a", 1)
	const strategicPatch = "application/strategic-merge-patch+json"
	a := s.do("PATCH", inDefault+"/a", `{"metadata":{"labels":{"x":"y"}},"spec":{"size":2}}`, "Content-Type", strategicPatch)
	require.Equal(t, 200, a.code, a.body)
	require.Equal(t, "2 y s1", a.str("spec.size")+" "+a.str("metadata.labels.x")+" "+a.str("metadata.labels.size"))
	a = s.do("PATCH", inDefault+"/a/status", `{"status":{"phase":"Up"}}`, "Content-Type", strategicPatch)
	require.Equal(t, "Up", a.str("status.phase"), a.body)
	require.Equal(t, 422, s.do("PATCH", inDefault+"/a", `{"spec":{"size":-1}}`, "Content-Type", strategicPatch).code)
	require.Equal(t, 400, s.do("PATCH", inDefault+"/a", `[]`, "Content-Type", strategicPatch).code)
	require.Equal(t, 404, s.do("PATCH", inDefault+"/b", `{}`, "Content-Type", strategicPatch).code)
	strict := s.do("PATCH", inDefault+"/a?fieldValidation=Strict", `{"spec":{"wrong":1}}`, "Content-Type", strategicPatch)
	require.Equal(t, 422, strict.code)
	require.Contains(t, strict.str("message"), "spec.wrong")
}

// An apply that creates needs to be allowed to; one that finds the object does not.
func TestApply_CreatesOnlyForThoseWhoMay(t *testing.T) {
	s := newServer(t, withApply, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authorize = func(_ context.Context, u serve.User, r *serve.Request) error {
			if r.Verb == "create" && u.Name != "maker" {
				return errors.New("no")
			}
			return nil
		}
		c.Authenticate = serve.BearerTokens(map[string]serve.User{"m": {Name: "maker"}, "k": {Name: "keeper"}})
	})
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	no := s.apply("?fieldManager=one", "{size: 1}", as("k")...)
	require.Equal(t, "403 Forbidden", fmt.Sprintf("%d %s", no.code, no.str("reason")), no.body)
	require.Equal(t, 201, s.apply("?fieldManager=one", "{size: 1}", as("m")...).code)
	require.Equal(t, 200, s.apply("?fieldManager=one", "{size: 2}", as("k")...).code)
}
