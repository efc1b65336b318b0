package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	authorizationGroup  = "authorization.k8s.io"
	authenticationGroup = "authentication.k8s.io"
)

var errNotAllowed = errors.New("alice reads lamps and the metrics, and all may ask")

// authorize allows alice to read lamps in the namespace hall, but not their status, and the metrics.
func authorize(_ context.Context, u serve.User, r *serve.Request) error {
	switch {
	case r.Group == authorizationGroup, r.Group == authenticationGroup:
		return nil
	case r.Name == "broken":
		panic("the rules are broken")
	case u.Name != "alice":
		return errNotAllowed
	case r.Group == "example.com" && r.Version == "v1" && r.Resource == "lamps" && r.Subresource == "" && r.Namespace == "hall" && (r.Verb == "get" || r.Labels == "app=x" && r.Fields == "a=b"):
		return nil
	case !r.IsResource() && r.Path == "/metrics" && r.Verb == "get":
		return nil
	}
	return errNotAllowed
}

// asker sends reviews to a server.
type asker struct {
	*testing.T
	url string
}

func newAsker(t *testing.T, cfg access.Config) asker {
	reviews, err := access.New(cfg)
	require.NoError(t, err)
	handler, err := serve.New(serve.Config{
		Resources: []serve.Provider{reviews}, Authenticate: cfg.Authenticate, Authorize: cfg.Authorize, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	h := httptest.NewServer(handler)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		h.Close()
	})
	return asker{t, h.URL}
}

func configured() access.Config {
	return access.Config{Authorize: authorize, Authenticate: serve.BearerTokens(map[string]serve.User{
		"a-token": {Name: "alice", Groups: []string{"readers"}}, "b-token": {Name: "bob"},
	})}
}

// send sends a request and returns the answer's code and body.
func (a asker) send(method, path, token, media string, body []byte) (int, []byte) {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), method, a.url+path, bytes.NewReader(body))
	require.NoError(a, err)
	r.Header.Set("Content-Type", media)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(a, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(a, err)
	return resp.StatusCode, text
}

// asking returns a review with a question.
func asking[T any](set func(review *T)) *T {
	review := new(T)
	set(review)
	return review
}

// ask sends a review, and decodes the answer into it.
func (a asker) ask(group, resource, kind, token string, of interface{ GetObjectKind() schema.ObjectKind }) {
	a.Helper()
	question, err := json.Marshal(of)
	require.NoError(a, err)
	code, answer := a.send("POST", "/apis/"+group+"/v1/"+resource, token, "application/json", question)
	require.Equal(a, 201, code, "%s", answer)
	require.NoError(a, json.Unmarshal(answer, of))
	require.Equal(a, group+"/v1, Kind="+kind, of.GetObjectKind().GroupVersionKind().String())
}

func (a asker) may(token string, of *access.ResourceAttributes, at *access.NonResourceAttributes) bool {
	a.Helper()
	review := asking(func(r *access.SelfSubjectAccessReview) {
		r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes = of, at
	})
	a.ask(authorizationGroup, "selfsubjectaccessreviews", "SelfSubjectAccessReview", token, review)
	require.Equal(a, review.Status.Allowed, review.Status.Reason == "", review.Status.Reason)
	return review.Status.Allowed
}

func TestAccess_NamesTheUserThatAsks(t *testing.T) {
	var self access.SelfSubjectReview
	newAsker(t, configured()).ask(authenticationGroup, "selfsubjectreviews", "SelfSubjectReview", "a-token", &self)
	require.Equal(t, access.UserInfo{Username: "alice", Groups: []string{"readers"}}, self.Status.UserInfo)

	var all access.SelfSubjectReview
	newAsker(t, access.Config{}).ask(authenticationGroup, "selfsubjectreviews", "SelfSubjectReview", "", &all)
	require.Equal(t, serve.Anonymous.Name, all.Status.UserInfo.Username)
}

// The answer is that of the server's own rules, by every part of a request that they may look at.
func TestAccess_TellsUsersWhatTheyMayDo(t *testing.T) {
	a := newAsker(t, configured())
	lamps := access.ResourceAttributes{Group: "example.com", Version: "v1", Resource: "lamps", Namespace: "hall", Verb: "get"}
	require.True(t, a.may("a-token", &lamps, nil))
	require.False(t, a.may("b-token", &lamps, nil))
	for _, change := range []func(*access.ResourceAttributes){
		func(l *access.ResourceAttributes) { l.Group = "example.org" },
		func(l *access.ResourceAttributes) { l.Version = "v2" },
		func(l *access.ResourceAttributes) { l.Resource = "lights" },
		func(l *access.ResourceAttributes) { l.Subresource = "status" },
		func(l *access.ResourceAttributes) { l.Namespace = "attic" },
		func(l *access.ResourceAttributes) { l.Verb = "delete" },
	} {
		other := lamps
		change(&other)
		require.False(t, a.may("a-token", &other, nil), "%v", other)
	}
	lamps.Verb = "list"
	require.False(t, a.may("a-token", &lamps, nil))
	lamps.LabelSelector = &access.LabelSelector{RawSelector: "app=x"}
	lamps.FieldSelector = &access.FieldSelector{RawSelector: "a=b"}
	require.True(t, a.may("a-token", &lamps, nil))
	require.True(t, a.may("a-token", nil, &access.NonResourceAttributes{Path: "/metrics", Verb: "get"}))
	require.False(t, a.may("a-token", nil, &access.NonResourceAttributes{Path: "/debug", Verb: "get"}))
	require.True(t, newAsker(t, access.Config{}).may("", &lamps, nil), "without rules all is allowed")
}

// What is known of a user beside its name reaches the rules, and comes back from them.
func TestAccess_KnowsAllOfAUser(t *testing.T) {
	ada := serve.User{Name: "ada", UID: "u-1", Groups: []string{"engineers"}, Extra: map[string][]string{"scopes": {"a", "b"}}}
	var asked []serve.User
	a := newAsker(t, access.Config{
		Authenticate: serve.BearerTokens(map[string]serve.User{"token": ada}),
		Authorize: func(_ context.Context, u serve.User, r *serve.Request) error {
			if r.Group == "example.com" {
				asked = append(asked, u)
			}
			return nil
		},
	})
	info := access.UserInfo{Username: "ada", UID: "u-1", Groups: ada.Groups, Extra: map[string][]string{"scopes": {"a", "b"}}}
	var self access.SelfSubjectReview
	a.ask(authenticationGroup, "selfsubjectreviews", "SelfSubjectReview", "token", &self)
	require.Equal(t, info, self.Status.UserInfo)
	token := asking(func(r *access.TokenReview) { r.Spec.Token = "token" })
	a.ask(authenticationGroup, "tokenreviews", "TokenReview", "token", token)
	require.Equal(t, info, token.Status.User)

	lamps := &access.ResourceAttributes{Group: "example.com", Resource: "lamps", Namespace: "hall", Verb: "get"}
	require.True(t, a.may("token", lamps, nil))
	other := asking(func(r *access.SubjectAccessReview) {
		r.Spec.User, r.Spec.UID, r.Spec.Groups, r.Spec.Extra, r.Spec.ResourceAttributes = "ada", "u-1", ada.Groups, ada.Extra, lamps
	})
	a.ask(authorizationGroup, "subjectaccessreviews", "SubjectAccessReview", "token", other)
	local := asking(func(r *access.LocalSubjectAccessReview) { r.Spec = other.Spec })
	a.ask(authorizationGroup, "namespaces/hall/localsubjectaccessreviews", "LocalSubjectAccessReview", "token", local)
	require.Equal(t, []serve.User{ada, ada, ada}, asked)
}

func TestAccess_TellsWhatOthersMayDoInANamespace(t *testing.T) {
	a := newAsker(t, configured())
	for namespace, may := range map[string]bool{"hall": true, "attic": false} {
		review := asking(func(r *access.LocalSubjectAccessReview) {
			r.Spec.User = "alice"
			r.Spec.ResourceAttributes = &access.ResourceAttributes{Group: "example.com", Version: "v1", Resource: "lamps", Namespace: namespace, Verb: "get"}
		})
		a.ask(authorizationGroup, "namespaces/"+namespace+"/localsubjectaccessreviews", "LocalSubjectAccessReview", "b-token", review)
		require.Equal(t, may, review.Status.Allowed, namespace)
		require.Equal(t, namespace, review.Namespace)
	}
}

// The rules that are listed are those of the user that asks, in the namespace that it names.
func TestAccess_ListsWhatUsersMayDo(t *testing.T) {
	list := func(cfg access.Config, token string) access.RulesStatus {
		t.Helper()
		review := asking(func(r *access.SelfSubjectRulesReview) {
			r.Spec.Namespace = "hall"
			r.Status.ResourceRules = []access.ResourceRule{{Verbs: []string{"mine"}}}
		})
		newAsker(t, cfg).ask(authorizationGroup, "selfsubjectrulesreviews", "SelfSubjectRulesReview", token, review)
		return review.Status
	}
	all := list(access.Config{}, "")
	require.False(t, all.Incomplete)
	require.Equal(t, []access.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}, all.ResourceRules)
	require.Equal(t, []access.NonResourceRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}, all.NonResourceRules)

	unlisted := list(configured(), "a-token")
	require.True(t, unlisted.Incomplete)
	require.Contains(t, unlisted.EvaluationError, "does not list its rules")
	require.Equal(t, "[] []", fmt.Sprint(unlisted.ResourceRules, unlisted.NonResourceRules))
	require.NotNil(t, unlisted.ResourceRules, "clients demand the list")
	require.NotNil(t, unlisted.NonResourceRules, "clients demand the list")

	cfg := configured()
	cfg.Rules = func(_ context.Context, u serve.User, namespace string) (rules access.Rules, err error) {
		rules.ResourceRules = []access.ResourceRule{{Verbs: []string{"get"}, Resources: []string{u.Name + "-in-" + namespace}}}
		if u.Name != "alice" {
			err = errors.New("the groups are not known")
		}
		return rules, err
	}
	for token, c := range map[string]struct{ user, problem string }{"a-token": {"alice", ""}, "b-token": {"bob", "the groups are not known"}} {
		listed := list(cfg, token)
		require.Equal(t, []string{c.user + "-in-hall"}, listed.ResourceRules[0].Resources)
		require.Equal(t, c.problem, listed.EvaluationError)
		require.Equal(t, c.problem != "", listed.Incomplete)
		require.NotNil(t, listed.NonResourceRules)
	}
}

func TestAccess_TellsServersWhatOthersMayDo(t *testing.T) {
	a := newAsker(t, configured())
	metrics := &access.NonResourceAttributes{Path: "/metrics", Verb: "get"}
	for user, may := range map[string]bool{"alice": true, "bob": false} {
		review := asking(func(r *access.SubjectAccessReview) { r.Spec.User, r.Spec.NonResourceAttributes = user, metrics })
		a.ask(authorizationGroup, "subjectaccessreviews", "SubjectAccessReview", "b-token", review)
		require.Equal(t, may, review.Status.Allowed, user)
	}
	ofGroups := asking(func(r *access.SubjectAccessReview) {
		r.Spec.Groups, r.Spec.NonResourceAttributes = []string{"readers"}, metrics
	})
	a.ask(authorizationGroup, "subjectaccessreviews", "SubjectAccessReview", "b-token", ofGroups)
	require.Equal(t, errNotAllowed.Error(), ofGroups.Status.Reason, "a review may have groups without a user, on which the rules decide")
	for token, user := range map[string]string{"a-token": "alice", "guess": ""} {
		review := asking(func(r *access.TokenReview) { r.Spec.Token = token })
		a.ask(authenticationGroup, "tokenreviews", "TokenReview", "b-token", review)
		require.Equal(t, user, review.Status.User.Username)
		require.Equal(t, user != "", review.Status.Authenticated)
		require.Empty(t, review.Status.Error)
	}
	meant := asking(func(r *access.TokenReview) { r.Spec.Token = "a-token"; r.Spec.Audiences = []string{"others"} })
	a.ask(authenticationGroup, "tokenreviews", "TokenReview", "b-token", meant)
	require.False(t, meant.Status.Authenticated)
	require.NotEmpty(t, meant.Status.Error)
}

// A client may send a status with its question. It is not the answer.
func TestAccess_TakesNoAnswerFromTheQuestion(t *testing.T) {
	a := newAsker(t, configured())
	code, text := a.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "b-token", "application/json",
		[]byte(`{"spec":{"token":"guess"},"status":{"authenticated":true,"user":{"username":"alice"}}}`))
	require.Equal(t, 201, code, "%s", text)
	var review access.TokenReview
	require.NoError(t, json.Unmarshal(text, &review))
	require.Equal(t, access.TokenStatus{}, review.Status)
}

// Then a server that asks does not take the token for a wrong one.
func TestAccess_SaysThatATokenCannotBeReviewedNow(t *testing.T) {
	a := newAsker(t, access.Config{Authenticate: func(r *http.Request) (serve.User, error) {
		if r.Header.Get("Authorization") == "Bearer mine" {
			return serve.User{Name: "server"}, nil
		}
		return serve.User{}, errors.New("the directory does not answer")
	}})
	review := asking(func(r *access.TokenReview) { r.Spec.Token = "other" })
	a.ask(authenticationGroup, "tokenreviews", "TokenReview", "mine", review)
	require.False(t, review.Status.Authenticated)
	require.Equal(t, "the directory does not answer", review.Status.Error)
}

// A server may serve requests whose token it does not know as those of an anonymous user. Another
// server that asks must not take such a token for a right one.
func TestAccess_TakesATokenThatIsServedAnonymouslyForAWrongOne(t *testing.T) {
	a := newAsker(t, access.Config{Authenticate: serve.FirstOf(
		serve.BearerTokens(map[string]serve.User{"mine": {Name: "server"}}),
		func(*http.Request) (serve.User, error) { return serve.Anonymous, nil },
	)})
	review := asking(func(r *access.TokenReview) { r.Spec.Token = "guess" })
	a.ask(authenticationGroup, "tokenreviews", "TokenReview", "mine", review)
	require.Equal(t, access.TokenStatus{}, review.Status)
}

// A request that is made of a token has a body, as each that a server gets.
func TestAccess_AsksAboutATokenByAWholeRequest(t *testing.T) {
	a := newAsker(t, access.Config{Authenticate: func(r *http.Request) (serve.User, error) {
		if r.Header.Get("Authorization") != "Bearer mine" {
			if _, err := io.ReadAll(r.Body); err != nil {
				return serve.User{}, err
			}
		}
		return serve.User{Name: "server"}, nil
	}})
	review := asking(func(r *access.TokenReview) { r.Spec.Token = "other" })
	a.ask(authenticationGroup, "tokenreviews", "TokenReview", "mine", review)
	require.True(t, review.Status.Authenticated)
}

func TestAccess_RefusesWhatIsNoQuestion(t *testing.T) {
	a := newAsker(t, configured())
	const (
		group  = "/apis/authorization.k8s.io/v1/"
		selves = group + "selfsubjectaccessreviews"
		others = group + "subjectaccessreviews"
		local  = group + "namespaces/hall/localsubjectaccessreviews"
		rules  = group + "selfsubjectrulesreviews"
		tokens = "/apis/authentication.k8s.io/v1/tokenreviews"
	)
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"POST", selves, `{}`, 422, "spec.resourceAttributes"},
		{"POST", selves, `{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}`, 422, "spec.resourceAttributes"},
		{"POST", others, `{"spec":{"resourceAttributes":{"verb":"get"}}}`, 422, "spec.user"},
		{"POST", local, `{"spec":{"resourceAttributes":{"namespace":"hall"}}}`, 422, "spec.user"},
		{"POST", local, `{"spec":{"user":"alice"}}`, 422, "spec.resourceAttributes"},
		{"POST", local, `{"spec":{"user":"alice","resourceAttributes":{"namespace":"attic"}}}`, 422, "spec.resourceAttributes.namespace"},
		{"POST", local, `{"spec":{"user":"alice","resourceAttributes":{}}}`, 422, "spec.resourceAttributes.namespace"},
		{"POST", local, `{"spec":{"user":"alice","nonResourceAttributes":{"path":"/metrics"}}}`, 422, "spec.nonResourceAttributes"},
		{"POST", local, `{"metadata":{"namespace":"attic"},"spec":{"user":"alice","resourceAttributes":{"namespace":"attic"}}}`, 400, "namespace"},
		{"POST", group + "localsubjectaccessreviews", `{}`, 405, ""},
		{"POST", rules, `{}`, 400, "no namespace on request"},
		{"POST", tokens, `{}`, 400, "token is required"},
		{"POST", tokens, `{"spec":{"audiences":["others"]}}`, 400, "token is required"},
		{"POST", selves, `{"kind":"TokenReview"}`, 400, "SelfSubjectAccessReview"},
		{"POST", selves, `{"spec":{"resourceAttributes":{"name":"broken"}}}`, 500, "panic"},
		{"GET", selves, ``, 405, ""},
		{"GET", selves + "/a", ``, 405, ""},
		{"DELETE", selves, ``, 405, ""},
		{"PUT", selves + "/a", `{}`, 405, ""},
	} {
		code, text := a.send(c.method, c.path, "a-token", "application/json", []byte(c.body))
		require.Equal(t, c.code, code, "%s %s %s: %s", c.method, c.path, c.body, text)
		require.Contains(t, strings.ToLower(string(text)), strings.ToLower(c.says))
	}
	code, _ := newAsker(t, access.Config{}).send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "", "application/json", []byte(`{}`))
	require.Equal(t, 404, code, "without authentication there are no tokens")
}
