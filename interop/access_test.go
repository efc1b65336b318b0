package interop_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/access"
)

// knowing serves widgets to alice, and to bob, who may only read, over TLS: kubectl sends tokens only there. Alice
// may act as bob, and as users in the group watchers.
func knowing(t *testing.T) (url string) {
	t.Helper()
	rules := access.Config{
		Authenticate: serve.BearerTokens(map[string]serve.User{"a-token": {Name: "alice", Groups: []string{"admins"}}, "b-token": {Name: "bob"}}),
		Authorize: func(_ context.Context, u serve.User, r *serve.Request) error {
			switch {
			case r.Verb == "impersonate" && (u.Name != "alice" || r.Name != "bob" && r.Name != "watchers"):
				return errors.New("alice may act as bob")
			case u.Name != "alice" && (r.Resource == "widgets" && r.Verb != "get" || r.Path == "/metrics"):
				return errors.New("alice may, and bob reads")
			}
			return nil
		},
	}
	widgets, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, widgets.Close()) })
	reviews, err := access.New(rules)
	require.NoError(t, err)
	handler, err := serve.New(serve.Config{
		Resources: []serve.Provider{widgets, reviews}, Authenticate: rules.Authenticate, Authorize: rules.Authorize, Impersonation: true,
	})
	require.NoError(t, err)
	h := httptest.NewTLSServer(handler)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL
}

func TestKubectl_TellsUsersWhatTheyMayDo(t *testing.T) {
	url := knowing(t)
	for _, program := range kubectls {
		t.Run(program.minor, func(t *testing.T) {
			for token, c := range map[string]struct{ user, mayDelete string }{"a-token": {"alice", "yes"}, "b-token": {"bob", "no"}} {
				k := newKubectl(t, program, url)
				k.args = append(k.args, "--insecure-skip-tls-verify", "--token", token)
				require.Regexp(t, `Username +`+c.user+`\n`, k.run("auth", "whoami"))
				require.Equal(t, "yes\n", k.run("auth", "can-i", "get", "widgets"))
				out, err := k.try("", "auth", "can-i", "delete", "widgets/a")
				require.Regexp(t, `^`+c.mayDelete+`\b`, out)
				require.Equal(t, c.mayDelete == "yes", err == nil, out)
				require.Contains(t, k.run("auth", "can-i", "--list"), "the list may be incomplete: this server decides each request")
			}
		})
	}
}

func TestKubectl_ActsAsAnother(t *testing.T) {
	url := knowing(t)
	for _, program := range kubectls {
		t.Run(program.minor, func(t *testing.T) {
			with := func(token string) *kubectl {
				k := newKubectl(t, program, url)
				k.args = append(k.args, "--insecure-skip-tls-verify", "--token", token)
				return k
			}
			refused := func(k *kubectl, says string, args ...string) {
				t.Helper()
				out, err := k.try("", args...)
				require.Error(t, err, out)
				require.Contains(t, out, says)
			}
			alice, bob := with("a-token"), with("b-token")
			_, err := alice.try(manifest("a", "1"), "apply", "-f", "-")
			require.NoError(t, err)
			require.Contains(t, alice.run("--as", "bob", "get", "widgets", "a"), "a")
			refused(alice, "alice may, and bob reads", "--as", "bob", "delete", "widgets", "a")
			require.Regexp(t, `Username +bob\n`, alice.run("--as", "bob", "auth", "whoami"))
			require.Regexp(t, `Groups +\[watchers system:authenticated\]\n`, alice.run("--as", "bob", "--as-group", "watchers", "auth", "whoami"))
			require.Equal(t, "yes\n", alice.run("--as", "bob", "auth", "can-i", "get", "widgets"))
			refused(alice, "no", "--as", "bob", "auth", "can-i", "delete", "widgets")
			require.Equal(t, "yes\n", alice.run("auth", "can-i", "impersonate", "users/bob"))

			refused(bob, "Forbidden", "--as", "alice", "get", "widgets", "a")
			const widget = "/apis/example.com/v1/namespaces/default/widgets/a"
			refused(bob, `User "bob" cannot impersonate resource "users" in API group "" at the cluster scope: alice may act as bob`, "--as", "alice", "get", "--raw", widget)
			refused(alice, `User "alice" cannot impersonate resource "groups"`, "--as", "bob", "--as-group", "admins", "get", "--raw", widget)
		})
	}
}

// The typed clients send their questions in protobuf, and read their answers in JSON. What they send comes back whole, in
// Kubernetes' own types.
func TestClientGo_AsksWhatUsersMayDo(t *testing.T) {
	cfg := &rest.Config{Host: knowing(t), BearerToken: "a-token", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := rest.HTTPClientFor(cfg)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	clients, err := kubernetes.NewForConfigAndClient(cfg, client)
	require.NoError(t, err)
	ctx, opts := t.Context(), meta.CreateOptions{}
	access, users := clients.AuthorizationV1(), clients.AuthenticationV1()

	who, err := users.SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, opts)
	require.NoError(t, err)
	require.Equal(t, authentication.UserInfo{Username: "alice", Groups: []string{"admins"}}, who.Status.UserInfo)
	of, err := users.TokenReviews().Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: "b-token"}}, opts)
	require.NoError(t, err)
	require.Equal(t, authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{Username: "bob"}}, of.Status)

	resource := &authorization.ResourceAttributes{
		Namespace: "default", Verb: "delete", Group: "example.com", Version: "v1", Resource: "widgets", Subresource: "status", Name: "a",
		FieldSelector: &authorization.FieldSelectorAttributes{Requirements: []meta.FieldSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"a"}}}},
		LabelSelector: &authorization.LabelSelectorAttributes{RawSelector: "x=y"},
	}
	subject := authorization.SubjectAccessReviewSpec{
		ResourceAttributes: resource, User: "bob", Groups: []string{"readers"}, UID: "u-1", Extra: map[string]authorization.ExtraValue{"scopes": {"a", "b"}},
	}
	self, err := access.SelfSubjectAccessReviews().Create(ctx, &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: resource}}, opts)
	require.NoError(t, err)
	require.Equal(t, authorization.SubjectAccessReviewStatus{Allowed: true}, self.Status)
	require.Equal(t, resource, self.Spec.ResourceAttributes)
	other, err := access.SubjectAccessReviews().Create(ctx, &authorization.SubjectAccessReview{Spec: subject}, opts)
	require.NoError(t, err)
	require.Equal(t, authorization.SubjectAccessReviewStatus{Reason: "alice may, and bob reads"}, other.Status)
	require.Equal(t, subject, other.Spec)
	local, err := access.LocalSubjectAccessReviews("default").Create(ctx, &authorization.LocalSubjectAccessReview{ObjectMeta: meta.ObjectMeta{Namespace: "default"}, Spec: subject}, opts)
	require.NoError(t, err)
	require.Equal(t, other.Status, local.Status)
	require.Equal(t, subject, local.Spec)
	rules, err := access.SelfSubjectRulesReviews().Create(ctx, &authorization.SelfSubjectRulesReview{Spec: authorization.SelfSubjectRulesReviewSpec{Namespace: "default"}}, opts)
	require.NoError(t, err)
	require.True(t, rules.Status.Incomplete)
	require.Empty(t, rules.Status.ResourceRules)
}

// The metrics of a manager, by default, are for users that the API server knows and allows to read them. The
// manager answers 500 to a token that the server does not know, whatever the server says of it.
func TestControllerRuntime_AsksWhichUsersMayReadMetrics(t *testing.T) {
	cfg := &rest.Config{Host: knowing(t), BearerToken: "a-token", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := rest.HTTPClientFor(cfg)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	filter, err := filters.WithAuthenticationAndAuthorization(cfg, client)
	require.NoError(t, err)
	metrics, err := filter(log.Log, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	require.NoError(t, err)
	for header, code := range map[string]int{"Bearer a-token": 200, "Bearer b-token": 403, "Bearer guess": 500, "": 401} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", header)
		answer := httptest.NewRecorder()
		metrics.ServeHTTP(answer, r)
		require.Equal(t, code, answer.Code, "%s: %s", header, answer.Body)
	}
}
