package serve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend"
)

// Eviction asks for the deletion of a widget.
type Eviction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Reason            string `json:"reason,omitempty"`
}

// evicting is a server of widgets, and of their eviction.
func evicting(t *testing.T, edit ...func(*registry.Config[Widget], *serve.Config)) *server {
	t.Helper()
	s := newServer(t, edit...)
	evictions, err := registry.NewAction(registry.ActionConfig[Eviction]{
		Of: widgetConfig().Kind, Subresource: "eviction", Kind: registry.Kind{Group: "policy.example.com", Version: "v1", Kind: "Eviction"},
		Do: func(ctx context.Context, key string, e *Eviction, opts registry.WriteOptions) error {
			if e.Reason == "" {
				return &registry.BadRequestError{Reason: "say why"}
			}
			_, _, err := s.widgets.Delete(ctx, key, registry.DeleteOptions{DryRun: opts.DryRun})
			return err
		},
	})
	require.NoError(t, err)
	require.NoError(t, s.handler.Add(evictions))
	return s
}

func TestAction_IsDiscoveredAndDescribed(t *testing.T) {
	s := evicting(t)
	plain := s.get("/apis/example.com/v1")
	require.Equal(t, "widgets/eviction policy.example.com v1 Eviction true [create]", strings.Join([]string{
		plain.str("resources.1.name"), plain.str("resources.1.group"), plain.str("resources.1.version"), plain.str("resources.1.kind"),
		plain.str("resources.1.namespaced"), plain.str("resources.1.verbs"),
	}, " "))
	doc := decodeJSON(t, s.get("/openapi/v3/apis/example.com/v1").body)
	path := doc["paths"].(map[string]any)["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/eviction"].(map[string]any)
	require.Len(t, path, 1)
	require.Contains(t, path, "post")
	require.Contains(t, doc["components"].(map[string]any)["schemas"], "com.example.policy.v1.Eviction")
}

func TestAction_IsDoneByItsCreation(t *testing.T) {
	s := evicting(t)
	s.create("a", 1)
	const of = inDefault + "/a/eviction"
	why := s.do("POST", of, `{}`)
	require.Equal(t, "400 say why", fmt.Sprintf("%d %s", why.code, why.str("message")))
	other := s.do("POST", of, `{"metadata":{"name":"b"},"reason":"x"}`)
	require.Equal(t, 400, other.code, other.body)
	dry := s.do("POST", of+"?dryRun=All", `{"reason":"x"}`)
	require.Equal(t, 201, dry.code, dry.body)
	require.Equal(t, 200, s.get(inDefault+"/a").code, "a dry run")
	yes := s.do("POST", of, `{"reason":"x"}`)
	require.Equal(t, "201 Eviction policy.example.com/v1 a default", fmt.Sprintf("%d %s %s %s %s", yes.code, yes.str("kind"), yes.str("apiVersion"), yes.str("metadata.name"), yes.str("metadata.namespace")))
	gone := s.do("POST", of, `{"reason":"x"}`)
	require.Equal(t, "404 a", fmt.Sprintf("%d %s", gone.code, gone.str("details.name")))
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		no := s.do(method, of, `{}`)
		require.Equal(t, "405 POST", fmt.Sprintf("%d %s", no.code, no.header.Get("Allow")), method)
	}
	require.Equal(t, 405, s.do("POST", inDefault+"/a/status", `{}`).code, "that is not an action")
	require.Equal(t, 404, newServer(t).do("POST", of, `{"reason":"x"}`).code, "a kind without one has none")
}

// Clients would repeat an action for a Retry-After, although it may have been done in part.
func TestAction_ThatFailsIsNotAskedForAgain(t *testing.T) {
	failure := errors.New("the mail is lost")
	s := newServer(t)
	mails, err := registry.NewAction(registry.ActionConfig[Eviction]{
		Of: widgetConfig().Kind, Subresource: "mail", Kind: registry.Kind{Group: "policy.example.com", Version: "v1", Kind: "Eviction"},
		Do: func(context.Context, string, *Eviction, registry.WriteOptions) error { return failure },
	})
	require.NoError(t, err)
	require.NoError(t, s.handler.Add(mails))
	for _, want := range []string{"500 InternalError ", "500 ServerTimeout 2"} {
		a := s.do("POST", inDefault+"/a/mail", `{}`)
		require.Equal(t, want, fmt.Sprintf("%d %s %s", a.code, a.str("reason"), a.header.Get("Retry-After")))
		failure = fmt.Errorf("%w: nobody there", backend.ErrUnavailable)
	}
}

func TestAction_IsAuthorizedAsASubresource(t *testing.T) {
	var asked []string
	s := evicting(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			if r.Subresource == "" {
				return nil
			}
			asked = append(asked, strings.Join([]string{r.Verb, r.Resource, r.Subresource, r.Name}, " "))
			return errors.New("not you")
		}
	})
	s.create("a", 1)
	require.Equal(t, 403, s.do("POST", inDefault+"/a/eviction", `{"reason":"x"}`).code)
	require.Equal(t, []string{"create widgets eviction a"}, asked)
}
