package corekinds_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/corekinds"
)

// Widget is a kind of the program's own.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// cluster is a server of the kinds, and of widgets.
type cluster struct {
	t       *testing.T
	kinds   *corekinds.Kinds
	widgets *registry.Store[Widget]
	server  *serve.Server
}

// newCluster returns a cluster of these settings, and of widgets with these admitters. It is closed at the end.
func newCluster(t *testing.T, cfg corekinds.Config, admit ...registry.Admitter) *cluster {
	t.Helper()
	if cfg.OnError == nil {
		cfg.OnError = func(err error) { t.Error(err) }
	}
	kinds, err := corekinds.New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kinds.Close()) })
	widgets, err := registry.New(registry.Config[Widget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}, Admit: append(admit, kinds),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, widgets.Close()) })
	server, err := serve.New(serve.Config{Resources: []serve.Provider{kinds, widgets}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, kinds.Start(t.Context(), server))
	return &cluster{t, kinds, widgets, server}
}

// do sends a request; headers are pairs of name and value.
func (c *cluster) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(c.t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	return w
}

// must is do for a request that must be answered with that code. It returns the answer's object.
func (c *cluster) must(code int, method, path, body string, headers ...string) map[string]any {
	c.t.Helper()
	a := c.do(method, path, body, headers...)
	require.Equal(c.t, code, a.Code, "%s %s: %s", method, path, a.Body)
	object := map[string]any{}
	require.NoError(c.t, json.Unmarshal(a.Body.Bytes(), &object), a.Body)
	return object
}

// refused sends a request that must be refused with 422, and returns what is wrong.
func (c *cluster) refused(method, path, body string, headers ...string) string {
	c.t.Helper()
	return c.must(http.StatusUnprocessableEntity, method, path, body, headers...)["message"].(string)
}

// at returns the value in an object at a path of names with dots between.
func at(object map[string]any, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	return value
}

// rows returns the cells of a table, without the name and the age.
func (c *cluster) rows(path string) (names []string, cells [][]any) {
	c.t.Helper()
	table := c.must(200, "GET", path, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	for _, column := range table["columnDefinitions"].([]any) {
		names = append(names, column.(map[string]any)["name"].(string))
	}
	for _, row := range table["rows"].([]any) {
		cells = append(cells, row.(map[string]any)["cells"].([]any))
	}
	return names, cells
}

// items returns the names of the objects at a path.
func (c *cluster) items(path string) (names []string) {
	c.t.Helper()
	for _, item := range c.must(200, "GET", path, "")["items"].([]any) {
		names = append(names, fmt.Sprint(at(item.(map[string]any), "metadata.name")))
	}
	return names
}

// message returns an object as typed clients send it.
func message(t *testing.T, apiVersion, kind string, object interface{ Marshal() ([]byte, error) }) string {
	t.Helper()
	raw, err := object.Marshal()
	require.NoError(t, err)
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	text, err := envelope.Marshal()
	require.NoError(t, err)
	return "k8s\x00" + string(text)
}

const (
	merge     = "application/merge-patch+json"
	strategic = "application/strategic-merge-patch+json"
	apply     = "application/apply-patch+yaml"
)

var (
	registryWrite = registry.WriteOptions{}
	latest        = engine.GetOptions{}
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
