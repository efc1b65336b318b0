package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/access"
)

const selvesPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// field returns a field of a message in protobuf, whose content is the texts, one after another.
func field(of protowire.Number, texts ...string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, of, protowire.BytesType), strings.Join(texts, "")))
}

// message returns a review as typed clients send it.
func message(t testing.TB, apiVersion, kind string, fields ...string) []byte {
	t.Helper()
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: []byte(strings.Join(fields, ""))}
	text, err := envelope.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), text...)
}

// namedA returns metadata in protobuf.
func namedA(t testing.TB) string {
	t.Helper()
	meta, err := (&metav1.ObjectMeta{Name: "a"}).Marshal()
	require.NoError(t, err)
	return field(1, string(meta))
}

// Typed clients of Kubernetes' own kinds send protobuf, and do not try JSON after that.
func TestAccess_TakesQuestionsInProtobuf(t *testing.T) {
	a := newAsker(t, configured())
	requirement := field(2, field(1, "app"), field(2, "In"), field(3, "x"))
	resource := field(1, field(1, "hall"), field(2, "list"), field(3, "example.com"), field(4, "v1"), field(5, "lamps"), field(6, "status"), field(7, "b"),
		field(8, field(1, "a=b"), requirement), field(9, field(1, "app=x"), requirement))
	const asked = `{"resourceAttributes":{"namespace":"hall","verb":"list","group":"example.com","version":"v1","resource":"lamps","subresource":"status","name":"b",
		"fieldSelector":{"rawSelector":"a=b","requirements":[{"key":"app","operator":"In","values":["x"]}]},
		"labelSelector":{"rawSelector":"app=x","requirements":[{"key":"app","operator":"In","values":["x"]}]}}`
	path := field(2, field(1, "/metrics"), field(2, "get"))
	subject := field(3, "ada") + field(4, "readers") + field(4, "writers") + field(5, field(1, "scopes"), field(2, field(1, "x"), field(1, "y"))) + field(6, "u-1")
	const user = `,"user":"ada","groups":["readers","writers"],"extra":{"scopes":["x","y"]},"uid":"u-1"}`
	const authorization, authentication = "authorization.k8s.io/v1", "authentication.k8s.io/v1"
	for _, c := range []struct {
		api, path, kind string
		spec, says      string
	}{
		{authorization, "selfsubjectaccessreviews", "SelfSubjectAccessReview", resource, asked + `}`},
		{authorization, "selfsubjectaccessreviews", "SelfSubjectAccessReview", path, `{"nonResourceAttributes":{"path":"/metrics","verb":"get"}}`},
		{authorization, "subjectaccessreviews", "SubjectAccessReview", resource + subject, asked + user},
		{authorization, "namespaces/hall/localsubjectaccessreviews", "LocalSubjectAccessReview", resource + subject, asked + user},
		{authorization, "selfsubjectrulesreviews", "SelfSubjectRulesReview", field(1, "hall"), `{"namespace":"hall"}`},
		{authentication, "tokenreviews", "TokenReview", field(1, "a-token") + field(2, "others"), `{"token":"a-token","audiences":["others"]}`},
		{authentication, "selfsubjectreviews", "SelfSubjectReview", "", ""},
	} {
		send := func(fields ...string) (int, []byte) {
			return a.send("POST", "/apis/"+c.api+"/"+c.path, "a-token", runtime.ContentTypeProtobuf, message(t, c.api, c.kind, fields...))
		}
		// A status, and fields of later versions, are skipped.
		code, text := send(namedA(t), field(2, c.spec), field(3, "\x08\x01"), field(9, "later"))
		require.Equal(t, 201, code, "%s", text)
		var answer struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     json.RawMessage
		}
		require.NoError(t, json.Unmarshal(text, &answer))
		require.Equal(t, c.kind, answer.Kind)
		require.Equal(t, "a", answer.Metadata.Name)
		if c.says != "" {
			require.JSONEq(t, c.says, string(answer.Spec))
			code, text = send(field(2, "\x0a\x05\x01"))
			require.Equal(t, 400, code, "a torn %s: %s", c.kind, text)
		}
	}
	code, text := a.send("POST", selvesPath, "a-token", runtime.ContentTypeProtobuf, []byte("k8s"))
	require.Equal(t, 400, code, "%s", text)
}

// A user that may do nothing may ask what it may do, if the rules let such requests through, and not about others.
func TestAsksAboutItself_LetsUsersAskThatMayDoNothing(t *testing.T) {
	a := newAsker(t, access.Config{
		Authenticate: serve.BearerTokens(map[string]serve.User{"token": {Name: "eve"}}),
		Authorize: func(_ context.Context, _ serve.User, r *serve.Request) error {
			if access.AsksAboutItself(r) {
				return nil
			}
			return errors.New("nothing else")
		},
	})
	require.False(t, a.may("token", &access.ResourceAttributes{Resource: "lamps", Verb: "get"}, nil))
	require.True(t, a.may("token", &access.ResourceAttributes{Group: authorizationGroup, Resource: "selfsubjectaccessreviews", Verb: "create"}, nil))
	require.False(t, a.may("token", &access.ResourceAttributes{Group: authorizationGroup, Resource: "selfsubjectaccessreviews", Subresource: "status", Verb: "create"}, nil))
	const group = "/apis/" + authorizationGroup + "/v1/"
	for path, c := range map[string]struct {
		question string
		code     int
	}{
		"/apis/" + authenticationGroup + "/v1/selfsubjectreviews": {`{}`, 201},
		group + "selfsubjectrulesreviews":                         {`{"spec":{"namespace":"hall"}}`, 201},
		group + "subjectaccessreviews":                            {`{"spec":{"user":"eve","nonResourceAttributes":{"path":"/"}}}`, 403},
		group + "namespaces/hall/localsubjectaccessreviews":       {`{"spec":{"user":"eve","resourceAttributes":{"namespace":"hall"}}}`, 403},
		"/apis/" + authenticationGroup + "/v1/tokenreviews":       {`{"spec":{"token":"token"}}`, 403},
	} {
		code, text := a.send("POST", path, "token", "application/json", []byte(c.question))
		require.Equal(t, c.code, code, "%s: %s", path, text)
	}
	code, _ := a.send("GET", selvesPath, "token", "application/json", nil)
	require.Equal(t, 403, code)
	code, _ = a.send("POST", selvesPath, "guess", "application/json", []byte(`{}`))
	require.Equal(t, 401, code)
}

// Nothing is written, so that a dry run is answered like any other request.
func TestAccess_AnswersInADryRun(t *testing.T) {
	a := newAsker(t, access.Config{})
	code, text := a.send("POST", selvesPath+"?dryRun=All", "", "application/json", []byte(`{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`))
	require.Equal(t, 201, code, "%s", text)
	require.Contains(t, string(text), `"allowed":true`)
}

func TestAccess_RefusesBodiesThatAreNoReview(t *testing.T) {
	a := newAsker(t, access.Config{})
	for body, c := range map[string]struct {
		code int
		says string
	}{
		``: {400, ""}, `{`: {400, ""}, `[]`: {400, ""}, `{"spec":7}`: {400, "spec"},
		`{"spec":{"resourceAttributes":{"name":"` + strings.Repeat("x", 4<<20) + `"}}}`: {http.StatusRequestEntityTooLarge, ""},
	} {
		code, text := a.send("POST", selvesPath, "", "application/json", []byte(body))
		require.Equal(t, c.code, code, "%.40s: %s", body, text)
		require.Contains(t, string(text), c.says)
	}
	code, text := a.send("POST", selvesPath+"?fieldValidation=Strict", "", "application/json", []byte(`{"spec":{"resourceAttributes":{"verbs":"get"}}}`))
	require.Equal(t, 400, code)
	require.Contains(t, string(text), "verbs")
}

// Discovery has the kinds as Kubernetes' has them: with creations alone.
func TestAccess_IsDiscovered(t *testing.T) {
	a := newAsker(t, access.Config{Authenticate: func(*http.Request) (serve.User, error) { return serve.Anonymous, nil }})
	for group, kinds := range map[string]string{
		authorizationGroup:  "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
		authenticationGroup: "SelfSubjectReview TokenReview",
	} {
		code, text := a.send("GET", "/apis/"+group+"/v1", "", "", nil)
		require.Equal(t, 200, code, "%s", text)
		var list metav1.APIResourceList
		require.NoError(t, json.Unmarshal(text, &list))
		var names []string
		for _, r := range list.APIResources {
			names = append(names, r.Kind)
			require.Equal(t, metav1.Verbs{"create"}, r.Verbs)
			require.Equal(t, r.Kind == "LocalSubjectAccessReview", r.Namespaced)
		}
		require.Equal(t, kinds, strings.Join(names, " "))
	}
}

func FuzzProtobuf(f *testing.F) {
	reviews, err := access.New(access.Config{Authenticate: serve.BearerTokens(nil)})
	require.NoError(f, err)
	f.Add(message(f, "authorization.k8s.io/v1", "SubjectAccessReview", field(2, field(3, "ada"), field(5, field(1, "scopes"), field(2, field(1, "x"))))))
	f.Add(message(f, "authorization.k8s.io/v1", "SelfSubjectAccessReview", field(2, field(1, field(2, "get"), field(8, field(1, "a=b"), field(2, field(1, "a")))))))
	f.Add(message(f, "authentication.k8s.io/v1", "TokenReview", field(2, field(1, "token"))))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, r := range reviews.Resources() {
			if text, err := r.Info().Decoders[runtime.ContentTypeProtobuf](body); err == nil {
				require.True(t, json.Valid(text))
			}
		}
	})
}
