package serve_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/serve"
)

// FuzzRequest sends requests of all kinds: each must be answered with what is no
// failure of the server's own.
func FuzzRequest(f *testing.F) {
	cfg := widgetConfig()
	cfg.Apply = apply.New
	widgets, err := registry.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = widgets.Close() })
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("GET", "/apis/example.com/v1/namespaces/default/widgets", "limit=1&labelSelector=a%3Db&fieldSelector=metadata.name%3Dx", "application/json", "")
	f.Add("GET", "/apis/example.com/v1/widgets", "continue=eyJjIjoiYSIsImwiOiJiIn0&resourceVersion=0", "application/json;as=Table;v=v1;g=meta.k8s.io", "")
	f.Add("PATCH", "/apis/example.com/v1/namespaces/default/widgets/a", "fieldManager=x&dryRun=All", "", `{"spec":{"size":1}}`)
	f.Add("PATCH", "/apis/example.com/v1/namespaces/default/widgets/a", "fieldManager=apply&force=1", "", "apiVersion: example.com/v1\nkind: Widget\nspec: {size: 1}")
	f.Add("DELETE", "/apis/example.com/v1/namespaces/default/widgets", "labelSelector=a%20in%20(b)", "*/*", `{"preconditions":{}}`)
	f.Add("POST", "/apis/example.com/v1/namespaces/a%2fb/widgets", "", "", `{"metadata":{"generateName":"a"}}`)
	f.Fuzz(func(t *testing.T, method, path, query, accept, body string) {
		if strings.Contains(query, "watch") || strings.Contains(query, "resourceVersion=") && !strings.Contains(query, "resourceVersion=0") || !strings.HasPrefix(path, "/") {
			return // those wait
		}
		target, err := url.Parse("http://localhost" + path + "?" + query)
		if err != nil {
			return
		}
		req, err := http.NewRequestWithContext(t.Context(), method, target.String(), strings.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("Accept", accept)
		if method == http.MethodPatch {
			req.Header.Set("Content-Type", mergePatch)
			if strings.Contains(query, "fieldManager=apply") {
				req.Header.Set("Content-Type", applyPatch)
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		answer, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		require.NotEqual(t, 500, w.Code, "%s", answer)
		require.Less(t, w.Code, 504)
	})
}
