package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/access"
)

const reviewsPath = "/apis/authorization.k8s.io/v1/"

// reviewed is the status of any review.
type reviewed struct {
	Allowed          bool
	Reason           string
	ResourceRules    []access.ResourceRule
	NonResourceRules []access.NonResourceRule
	Incomplete       bool
	EvaluationError  string
	UserInfo         struct{ Username string }
}

// review asks a server.
func review(t *testing.T, url, token, spec string) reviewed {
	t.Helper()
	code, answer := call(t, "POST", url, token, `{"spec":`+spec+`}`)
	require.Equal(t, 201, code, answer)
	var of struct{ Status reviewed }
	require.NoError(t, json.Unmarshal([]byte(answer), &of))
	return of.Status
}

// mayDo asks whether users may do something to widgets.
func mayDo(t *testing.T, url, verb string) reviewed {
	t.Helper()
	return review(t, url+reviewsPath+"selfsubjectaccessreviews", "", `{"resourceAttributes":{"verb":"`+verb+`","group":"example.com","resource":"widgets","namespace":"default"}}`)
}

// rulesOf lists what users may do.
func rulesOf(t *testing.T, url string) reviewed {
	t.Helper()
	return review(t, url+reviewsPath+"selfsubjectrulesreviews", "", `{"namespace":"default"}`)
}

// Consoles such as k9s show a kind only if the server says that the user may list it.
func TestServe_TellsUsersThatTheyMayDoEverything(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("first,alice,1\n"), 0o600))
	out := newServedOutput()
	url, stop := servingTo(t, out, server.Options{Data: "memory", TokenFile: tokens})
	defer stop()
	may := review(t, url+reviewsPath+"selfsubjectaccessreviews", "first", `{"resourceAttributes":{"verb":"delete","group":"example.com","resource":"widgets"}}`)
	require.True(t, may.Allowed)
	require.Equal(t, "alice", review(t, url+"/apis/authentication.k8s.io/v1/selfsubjectreviews", "first", `{}`).UserInfo.Username)
	code, _ := call(t, "POST", url+reviewsPath+"selfsubjectaccessreviews", "guess", `{}`)
	require.Equal(t, 401, code)
	rules := review(t, url+reviewsPath+"selfsubjectrulesreviews", "first", `{"namespace":"default"}`)
	require.Equal(t, []string{"*"}, rules.ResourceRules[0].Verbs)
	require.False(t, rules.Incomplete)
	require.NotContains(t, out.String(), "reviews", "it tells the kinds that have objects")
}

// writable serves widgets that clients may read and create. If it has reviews, it says so.
func writable(t *testing.T, hasReviews bool) *httptest.Server {
	t.Helper()
	widgets, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, widgets.Close()) })
	rules := access.Config{
		Authorize: func(_ context.Context, _ serve.User, r *serve.Request) error {
			if r.Verb == "delete" {
				return errors.New("widgets stay")
			}
			return nil
		},
		Rules: func(context.Context, serve.User, string) (access.Rules, error) {
			return access.Rules{ResourceRules: []access.ResourceRule{{Verbs: []string{"create"}, APIGroups: []string{"example.com"}, Resources: []string{"widgets"}}}}, errors.New("there are more")
		},
	}
	reviews, err := access.New(rules)
	require.NoError(t, err)
	of := []serve.Provider{widgets}
	if hasReviews {
		of = append(of, reviews)
	}
	handler, err := serve.New(serve.Config{Resources: of, Authorize: rules.Authorize})
	require.NoError(t, err)
	origin := httptest.NewServer(handler)
	t.Cleanup(func() {
		origin.CloseClientConnections()
		origin.Close()
	})
	return origin
}

// What a replica passes on is refused there. It serves reads by itself, to all users.
func TestServe_AReplicaAsksItsOriginWhatUsersMayDo(t *testing.T) {
	origin := writable(t, true)
	replica, stop := serving(t, server.Options{Data: "memory", Upstream: origin.URL})
	defer stop()
	second, stopSecond := serving(t, server.Options{Data: "memory", Upstream: replica})
	defer stopSecond()
	for _, url := range []string{replica, second} {
		for _, verb := range []string{"get", "list", "watch", "create", "update"} {
			require.True(t, mayDo(t, url, verb).Allowed, verb)
		}
		refused := mayDo(t, url, "delete")
		require.False(t, refused.Allowed)
		require.Contains(t, refused.Reason, "the upstream server refuses it: ")
		require.Contains(t, refused.Reason, "widgets stay")
		rules := rulesOf(t, url)
		require.Contains(t, rules.ResourceRules, access.ResourceRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
		require.Contains(t, rules.ResourceRules, access.ResourceRule{Verbs: []string{"create"}, APIGroups: []string{"example.com"}, Resources: []string{"widgets"}})
		require.True(t, rules.Incomplete)
		require.Contains(t, rules.EvaluationError, "there are more")
	}
	require.True(t, review(t, replica+reviewsPath+"selfsubjectaccessreviews", "", `{"nonResourceAttributes":{"path":"/metrics","verb":"get"}}`).Allowed, "its own")

	origin.CloseClientConnections()
	origin.Close()
	require.True(t, mayDo(t, replica, "list").Allowed, "it is served from the cache")
	refused := mayDo(t, replica, "create")
	require.False(t, refused.Allowed)
	require.Contains(t, refused.Reason, "the upstream server does not say whether it is allowed: ")
	require.True(t, rulesOf(t, replica).Incomplete)
}

// Then only an attempt can tell.
func TestServe_AReplicaOfAServerWithoutReviewsRefusesNothing(t *testing.T) {
	replica, stop := serving(t, server.Options{Data: "memory", Upstream: writable(t, false).URL})
	defer stop()
	require.True(t, mayDo(t, replica, "delete").Allowed)
	rules := rulesOf(t, replica)
	require.Equal(t, []string{"*"}, rules.ResourceRules[0].Verbs)
	require.False(t, rules.Incomplete)
}
