package serve_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/serve"
)

// BenchmarkRequest measures each kind of request without a network: routing, the registry
// and the encoding. Lists have a thousand widgets.
func BenchmarkRequest(b *testing.B) {
	const one = inDefault + "/w500"
	for _, r := range []struct {
		name, method, path, body string // %d is the number of the request
		headers                  []string
	}{
		{name: "get", method: "GET", path: one},
		{name: "get from the cache", method: "GET", path: one + "?resourceVersion=0"},
		{name: "list", method: "GET", path: inDefault + "?resourceVersion=0"},
		{name: "list a page", method: "GET", path: inDefault + "?limit=100"},
		{name: "list by label", method: "GET", path: inDefault + "?resourceVersion=0&labelSelector=size%3Ds1"},
		{name: "list by field", method: "GET", path: inDefault + "?resourceVersion=0&fieldSelector=spec.color%3Dc1"},
		{name: "list as a table", method: "GET", path: inDefault + "?resourceVersion=0", headers: []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}},
		{name: "list metadata", method: "GET", path: inDefault + "?resourceVersion=0", headers: []string{"Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}},
		{name: "list compressed", method: "GET", path: inDefault + "?resourceVersion=0", headers: []string{"Accept-Encoding", "gzip"}},
		{name: "create", method: "POST", path: inDefault, body: `{"metadata":{"name":"n%d","labels":{"size":"s1"}},"spec":{"size":1,"color":"red"}}`},
		{name: "update", method: "PUT", path: one, body: `{"metadata":{"name":"w500","labels":{"size":"s1"}},"spec":{"size":%d,"color":"red"}}`},
		{name: "update the status", method: "PUT", path: one + "/status", body: `{"metadata":{"name":"w500"},"status":{"phase":"p%d"}}`},
		{name: "merge patch", method: "PATCH", path: one, body: `{"spec":{"size":%d}}`, headers: []string{"Content-Type", mergePatch}},
		{name: "JSON patch", method: "PATCH", path: one, body: `[{"op":"replace","path":"/spec/size","value":%d}]`, headers: []string{"Content-Type", "application/json-patch+json"}},
		{name: "apply", method: "PATCH", path: one + "?fieldManager=m&force=true", body: `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w500"},"spec":{"size":%d}}`, headers: []string{"Content-Type", "application/apply-patch+yaml"}},
	} {
		b.Run(r.name, func(b *testing.B) {
			handler := benchmarked(b)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				body := r.body
				if strings.Contains(body, "%d") {
					body = fmt.Sprintf(body, 1000+n)
				}
				req := httptest.NewRequestWithContext(b.Context(), r.method, r.path, strings.NewReader(body))
				req.Host = "localhost"
				for i := 0; i < len(r.headers); i += 2 {
					req.Header.Set(r.headers[i], r.headers[i+1])
				}
				answer := &discarded{header: http.Header{}}
				handler.ServeHTTP(answer, req)
				require.Less(b, answer.code, 300, answer.failure)
			}
		})
	}
}

// benchmarked is a server of a thousand widgets.
func benchmarked(b *testing.B) http.Handler {
	cfg := widgetConfig()
	cfg.Apply = apply.New
	widgets, err := registry.New(cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, widgets.Close()) })
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}, CompressAbove: 1 << 10, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	for i := range 1000 {
		w := Widget{Spec: WidgetSpec{Size: 1000 + i, Color: fmt.Sprint("c", i%100)}}
		w.Name, w.Namespace, w.Labels = fmt.Sprint("w", i), "default", map[string]string{"size": fmt.Sprint("s", i%100)}
		_, err := widgets.Create(b.Context(), w, registry.WriteOptions{})
		require.NoError(b, err)
	}
	return handler
}

// discarded is an answer of which only the status is kept, and what says why it failed.
type discarded struct {
	header  http.Header
	code    int
	failure string
}

func (d *discarded) Header() http.Header { return d.header }

func (d *discarded) WriteHeader(code int) { d.code = code }

func (d *discarded) Write(text []byte) (int, error) {
	if d.code == 0 {
		d.code = http.StatusOK
	}
	if d.code >= 300 {
		d.failure += string(text)
	}
	return len(text), nil
}
