package serve_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// newCoreServer serves widgets in the core group and in one with a name, and namespaces.
func newCoreServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t}
	cfg := serve.Config{Logger: slog.New(slog.DiscardHandler)}
	for _, kind := range []registry.Kind{
		{Version: "v1", Kind: "Widget"},
		{Version: "v1", Kind: "Namespace", ClusterScoped: true, Status: true},
		{Group: "example.com", Version: "v1", Kind: "Widget"},
	} {
		store, err := registry.New(registry.Config[Widget]{Kind: kind, Engine: widgetConfig().Engine})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		cfg.Resources = append(cfg.Resources, store)
	}
	var err error
	s.handler, err = serve.New(cfg)
	require.NoError(t, err)
	h := httptest.NewServer(s.handler)
	t.Cleanup(h.Close)
	s.url, s.client = h.URL, h.Client()
	return s
}

func TestCoreGroup_IsServedBelowAPI(t *testing.T) {
	s := newCoreServer(t)
	made := s.do("POST", "/api/v1/namespaces/default/widgets", `{"apiVersion":"v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1}}`)
	require.Equal(t, 201, made.code, made.body)
	require.Equal(t, "v1 Widget", made.str("apiVersion")+" "+made.str("kind"))
	list := s.get("/api/v1/widgets")
	require.Equal(t, "v1 WidgetList a", list.str("apiVersion")+" "+list.str("kind")+" "+list.str("items.0.metadata.name"))
	require.Equal(t, "[]", s.get("/apis/example.com/v1/widgets").str("items"), "another group has other objects")
	require.Equal(t, 404, s.get("/apis/example.com/v1/namespaces/default/widgets/a").code)
	require.Equal(t, 404, s.get("/apis/v1/widgets").code)
	missing := s.get("/api/v1/namespaces/default/widgets/b")
	require.Equal(t, `404 widgets "b" not found`, strings.Join([]string{missing.str("code"), missing.str("message")}, " "))
	wrong := s.do("POST", "/api/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"c"}}`)
	require.Equal(t, 400, wrong.code)
}

// The path of a namespace's status looks like one of a resource within the namespace.
func TestCoreGroup_NamespacesHaveSubresources(t *testing.T) {
	s := newCoreServer(t)
	require.Equal(t, 201, s.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"a"},"spec":{"size":1}}`).code)
	patched := s.do("PATCH", "/api/v1/namespaces/a/status", `{"status":{"phase":"Active"}}`, "Content-Type", "application/merge-patch+json")
	require.Equal(t, 200, patched.code, patched.body)
	require.Equal(t, "Active", s.get("/api/v1/namespaces/a").str("status.phase"))
}

// As in Kubernetes, that does not depend on the group.
func TestRequest_NamespacesOfAnotherGroupHaveAStatus(t *testing.T) {
	s := newServer(t, func(of *registry.Config[Widget], _ *serve.Config) {
		of.Kind = registry.Kind{Group: "tenants.example.com", Version: "v1", Kind: "Namespace", ClusterScoped: true, Status: true}
	})
	const namespaces = "/apis/tenants.example.com/v1/namespaces"
	require.Equal(t, 201, s.do("POST", namespaces, `{"metadata":{"name":"a"},"spec":{"size":1}}`).code)
	patched := s.do("PATCH", namespaces+"/a/status", `{"status":{"phase":"Active"}}`, "Content-Type", "application/merge-patch+json")
	require.Equal(t, 200, patched.code, patched.body)
	require.Equal(t, "Active", s.get(namespaces+"/a").str("status.phase"))
}

func TestCoreGroup_IsDiscovered(t *testing.T) {
	s := newCoreServer(t)
	require.Equal(t, "[v1]", s.get("/api").str("versions"))
	resources := s.get("/api/v1")
	require.Equal(t, "APIResourceList v1 namespaces namespaces/status widgets", strings.Join([]string{
		resources.str("kind"), resources.str("groupVersion"), resources.str("resources.0.name"), resources.str("resources.1.name"), resources.str("resources.2.name"),
	}, " "))
	groups := s.get("/apis")
	require.Equal(t, "example.com <none>", groups.str("groups.0.name")+" "+groups.str("groups.1"), "the core group is not among the named ones")

	core := s.get("/api", "Accept", acceptAggregated)
	require.Equal(t, " v1 namespaces Namespace", strings.Join([]string{
		core.str("items.0.metadata.name"), core.str("items.0.versions.0.version"),
		core.str("items.0.versions.0.resources.0.resource"), core.str("items.0.versions.0.resources.0.responseKind.kind"),
	}, " "))
	named := s.get("/apis", "Accept", acceptAggregated)
	require.Equal(t, "example.com <none>", named.str("items.0.metadata.name")+" "+named.str("items.1"))
}

func TestCoreGroup_IsDescribed(t *testing.T) {
	s := newCoreServer(t)
	index := decodeJSON(t, s.get("/openapi/v3").body)["paths"].(map[string]any)
	url := index["api/v1"].(map[string]any)["serverRelativeURL"].(string)
	require.True(t, strings.HasPrefix(url, "/openapi/v3/api/v1?hash="), url)
	doc := decodeJSON(t, s.get(url).body)
	require.Contains(t, doc["paths"], "/api/v1/namespaces/{namespace}/widgets/{name}")
	require.Contains(t, doc["components"].(map[string]any)["schemas"], "core.v1.Widget")
}
