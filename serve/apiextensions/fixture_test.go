package apiextensions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// cluster is a server of definitions and of what they define.
type cluster struct {
	t           *testing.T
	definitions *apiextensions.Definitions
	server      *serve.Server
}

// newCluster returns a cluster of these settings, and of the kinds of others, if any. It is
// closed at the end.
func newCluster(t *testing.T, cfg apiextensions.Config, others ...serve.Provider) *cluster {
	t.Helper()
	if cfg.OnError == nil {
		cfg.OnError = func(err error) { t.Error(err) }
	}
	d, err := apiextensions.New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	server, err := serve.New(serve.Config{Resources: append(others, d), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, d.Start(t.Context(), server))
	return &cluster{t, d, server}
}

// patiently has the reads of a kind wait for its cache for as long as a machine may stand still. It is for tests in
// real time.
func patiently(c *registry.Config[unstructured.Unstructured]) { c.Engine.FreshnessTimeout = time.Hour }

// answer is what a request got.
type answer struct {
	*httptest.ResponseRecorder
}

// object returns the body as an object.
func (a answer) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(a.Body.Bytes()); err != nil {
		o.Object = map[string]any{"body": a.Body.String()}
	}
	return o
}

// do sends a request; headers are pairs of name and value.
func (c *cluster) do(method, path, body string, headers ...string) answer {
	return c.doContext(context.Background(), method, path, body, headers...)
}

func (c *cluster) doContext(ctx context.Context, method, path, body string, headers ...string) answer {
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	return answer{w}
}

// must is do for a request that must be answered with that code.
func (c *cluster) must(code int, method, path, body string, headers ...string) answer {
	c.t.Helper()
	a := c.do(method, path, body, headers...)
	require.Equal(c.t, code, a.Code, "%s %s: %s", method, path, a.Body)
	return a
}

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	widgetsName     = "widgets.example.com"
	widgetsPath     = "/apis/example.com/v1/namespaces/default/widgets"
)

// definition returns a definition in JSON. Each edit is of its spec.
func definition(plural, kind string, edits ...func(spec map[string]any)) string {
	spec := map[string]any{
		"group": "example.com", "scope": "Namespaced",
		"names": map[string]any{"plural": plural, "kind": kind},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object",
				"properties": map[string]any{"spec": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"size":  map[string]any{"type": "integer", "maximum": 10},
						"color": map[string]any{"type": "string"},
					},
				}},
			}},
		}},
	}
	for _, edit := range edits {
		edit(spec)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"}, "spec": spec,
	})
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return string(text)
}

// ofVersion edits the version of a spec.
func ofVersion(edit func(version map[string]any)) func(map[string]any) {
	return func(spec map[string]any) { edit(spec["versions"].([]any)[0].(map[string]any)) }
}

// addVersion adds to a spec the version v1beta1, which has no sizes.
func addVersion(spec map[string]any) {
	spec["versions"] = append(spec["versions"].([]any), map[string]any{
		"name": "v1beta1", "served": true, "storage": false,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object",
			"properties": map[string]any{"spec": map[string]any{
				"type": "object", "properties": map[string]any{"color": map[string]any{"type": "string"}},
			}},
		}},
	})
}

// define creates a definition, and waits until its kind is served.
func (c *cluster) define(text string) {
	c.t.Helper()
	a := c.must(http.StatusCreated, "POST", definitionsPath, text)
	c.await(a.object().GetName(), "Established=True")
}

// await waits until a definition has the condition, such as Established=True, or is gone.
func (c *cluster) await(name, condition string) {
	c.t.Helper()
	w, err := c.definitions.Store().Engine().Watch(c.t.Context(), engine.WatchOptions{Key: name, InitialState: true, Bookmarks: true})
	require.NoError(c.t, err)
	defer w.Stop()
	found := false
	for {
		events, err := w.Next(c.t.Context())
		require.NoError(c.t, err)
		for _, ev := range events {
			switch {
			case ev.Type == engine.Deleted, ev.Type == engine.Bookmark && !found:
				if condition == "gone" {
					return
				}
			case ev.Object != nil:
				found = true
				if slices.Contains(conditions(&ev.Object.Value), condition) {
					return
				}
			}
		}
	}
}

// get returns a definition.
func (c *cluster) get(name string) *unstructured.Unstructured {
	c.t.Helper()
	return c.must(200, "GET", definitionsPath+"/"+name, "").object()
}

// conditions returns the conditions of a definition, each as in Established=True.
func conditions(o *unstructured.Unstructured) (all []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range list {
		c := one.(map[string]any)
		all = append(all, fmt.Sprintf("%v=%v", c["type"], c["status"]))
	}
	return all
}

// lasting is storage that outlives clusters, and that several may share.
type lasting struct {
	mu  sync.Mutex
	all map[string]*memory.Backend
}

// newLasting returns storage that is closed at the end.
func newLasting(t *testing.T) *lasting {
	t.Helper()
	l := &lasting{all: map[string]*memory.Backend{}}
	t.Cleanup(func() {
		for _, objects := range l.all {
			require.NoError(t, objects.Close())
		}
	})
	return l
}

// open returns the storage of a name, which stays open.
func (l *lasting) open(name string, schema store.Schema) (backend.Backend, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[name] == nil {
		var err error
		if l.all[name], err = memory.New(schema, memory.Options{}); err != nil {
			return nil, err
		}
	}
	return keptOpen{l.all[name]}, nil
}

// config is a configuration with that storage, which wrap may change by its name.
func (l *lasting) config(wrap ...func(name string, objects backend.Backend) backend.Backend) apiextensions.Config {
	return apiextensions.Config{Storage: func(_ context.Context, name string, schema store.Schema) (backend.Backend, error) {
		objects, err := l.open(name, schema)
		for _, w := range wrap {
			objects = w(name, objects)
		}
		return objects, err
	}}
}

// keptOpen is storage that is not closed.
type keptOpen struct{ backend.Backend }

func (keptOpen) Close() error { return nil }

// unchecked returns a store of definitions without their rules.
func (l *lasting) unchecked(t *testing.T) *registry.Store[unstructured.Unstructured] {
	t.Helper()
	cfg := registry.Config[unstructured.Unstructured]{Kind: registry.Kind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", ClusterScoped: true,
	}}
	var err error
	cfg.Engine.Backend, err = l.open("customresourcedefinitions.apiextensions.k8s.io", registry.Schema(cfg))
	require.NoError(t, err)
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// createUnchecked stores a definition without the rules of definitions.
func (l *lasting) createUnchecked(t *testing.T, text string) {
	t.Helper()
	o := unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON([]byte(text)))
	o.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
	_, err := l.unchecked(t).Create(t.Context(), o, registry.WriteOptions{})
	require.NoError(t, err)
}

// changeUnchecked changes the spec of a definition without the rules of definitions.
func (l *lasting) changeUnchecked(t *testing.T, name string, edit func(spec map[string]any)) {
	t.Helper()
	_, _, err := l.unchecked(t).Update(t.Context(), name, func(old *engine.Object[unstructured.Unstructured]) (unstructured.Unstructured, error) {
		o := *old.Value.DeepCopy()
		edit(o.Object["spec"].(map[string]any))
		return o, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
}
