package serve_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// readOnly gives widgets, which have a scale, no writes for clients.
func readOnly(w *registry.Config[Widget], c *serve.Config) {
	withScale(w, c)
	w.ReadOnly = true
}

// A program writes a kind, and its clients read it.
func TestReadOnly_ClientsReadWhatTheProgramWrites(t *testing.T) {
	s := newServer(t, readOnly)
	a := Widget{Spec: WidgetSpec{Size: 3}}
	a.Name, a.Namespace = "a", "default"
	made, err := s.widgets.Create(t.Context(), a, registry.WriteOptions{})
	require.NoError(t, err)
	w := s.watch(inDefault + "?watch=1")
	w.expect("ADDED a")
	require.Equal(t, "3", s.get(inDefault+"/a/scale").str("spec.replicas"))
	_, gone, err := s.widgets.Delete(t.Context(), made.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, gone)
	w.expect("DELETED a")
}

func TestReadOnly_WritesOfClientsAreRefused(t *testing.T) {
	s := newServer(t, readOnly)
	for _, write := range []struct{ method, path string }{
		{"POST", inDefault},
		{"DELETE", inDefault},
		{"PUT", inDefault + "/a"},
		{"PATCH", inDefault + "/a"},
		{"DELETE", inDefault + "/a"},
		{"PUT", inDefault + "/a/status"},
		{"PATCH", inDefault + "/a/scale"},
	} {
		refused := s.do(write.method, write.path, `{"metadata":{"name":"a"}}`, "Content-Type", applyPatch)
		require.Equal(t, "405 MethodNotAllowed GET, HEAD", fmt.Sprintf("%d %s %s", refused.code, refused.str("reason"), refused.header.Get("Allow")), write)
	}
}

func TestReadOnly_ClientsDiscoverIt(t *testing.T) {
	s := newServer(t, readOnly)
	kinds := s.get("/apis/example.com/v1")
	require.Equal(t, "widgets [get list watch], widgets/scale [get], widgets/status [get]", fmt.Sprintf("%s %s, %s %s, %s %s",
		kinds.str("resources.0.name"), kinds.str("resources.0.verbs"), kinds.str("resources.1.name"), kinds.str("resources.1.verbs"),
		kinds.str("resources.2.name"), kinds.str("resources.2.verbs")))
	paths := decodeJSON(t, s.get("/openapi/v3/apis/example.com/v1").body)["paths"].(map[string]any)
	one := paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"].(map[string]any)
	require.Contains(t, one, "get")
	for _, method := range []string{"put", "patch", "delete"} {
		require.NotContains(t, one, method)
	}
}
