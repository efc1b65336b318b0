package serve_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/serve"
)

// FuzzRequest sends requests of all kinds: each must be answered with what is not a
// failure of the server's own.
func FuzzRequest(f *testing.F) {
	handler, _ := fuzzed(f)
	f.Add("GET", "/apis/example.com/v1/namespaces/default/widgets", "limit=1&labelSelector=a%3Db&fieldSelector=metadata.name%3Dx", "application/json", "")
	f.Add("GET", "/apis/example.com/v1/widgets", "continue=eyJjIjoiYSIsImwiOiJiIn0&resourceVersion=0", "application/json;as=Table;v=v1;g=meta.k8s.io", "")
	f.Add("PATCH", "/apis/example.com/v1/namespaces/default/widgets/a", "fieldManager=x&dryRun=All", "", `{"spec":{"size":1}}`)
	f.Add("PATCH", "/apis/example.com/v1/namespaces/default/widgets/a", "fieldManager=apply&force=1", "", "apiVersion: example.com/v1\nkind: Widget\nspec: {size: 1}")
	f.Add("DELETE", "/apis/example.com/v1/namespaces/default/widgets", "labelSelector=a%20in%20(b)", "*/*", `{"preconditions":{}}`)
	f.Add("POST", "/apis/example.com/v1/namespaces/a%2fb/widgets", "", "", `{"metadata":{"generateName":"a"}}`)
	f.Fuzz(func(t *testing.T, method, path, query, accept, body string) {
		if strings.Contains(path+query, "watch") || strings.Contains(query, "resourceVersion=") && !strings.Contains(query, "resourceVersion=0") || !strings.HasPrefix(path, "/") {
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

// fuzzed returns a server of three widgets.
func fuzzed(f *testing.F) (*serve.Server, []*Widget) {
	f.Helper()
	cfg := widgetConfig()
	cfg.Apply = apply.New
	cfg.Engine.FirstRevision = 1 // the same in each process, for tokens
	widgets, err := registry.New(cfg)
	require.NoError(f, err)
	f.Cleanup(func() { _ = widgets.Close() })
	var all []*Widget
	for i, color := range []string{"red", "red", "blue"} {
		w := Widget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("w", i), Namespace: "default", Labels: map[string]string{"n": fmt.Sprint(i), "a": "b"}}}
		w.Spec.Color = color
		stored, err := widgets.Create(f.Context(), w, registry.WriteOptions{})
		require.NoError(f, err)
		all = append(all, &stored.Value)
	}
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(f, err)
	return handler, all
}

// listed returns the answer to a list, and the names in it.
func listed(t *testing.T, handler http.Handler, query url.Values) (answer, string) {
	t.Helper()
	w := httptest.NewRecorder()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost"+inDefault+"?"+query.Encode(), nil)
	require.NoError(t, err)
	handler.ServeHTTP(w, req)
	a := answer{w.Code, w.Header(), w.Body.String()}
	names := ""
	for i := range 3 {
		if name := a.str(fmt.Sprintf("items.%d.metadata.name", i)); w.Code == 200 && name != "<none>" {
			names += name + " "
		}
	}
	return a, names
}

// FuzzSelectors lists by selectors: what is taken selects what the libraries of
// Kubernetes say, whatever indexes serve it, and what is not is a bad request.
func FuzzSelectors(f *testing.F) {
	handler, all := fuzzed(f)
	f.Add("a=b,n in (0,2)", "spec.color!=blue")
	f.Add("!x,n notin (1),a", "metadata.name=w1,metadata.namespace==default")
	f.Add("n>0", "metadata.name!=w0")
	f.Add("a==", `spec.color=r\=d\,`)
	f.Fuzz(func(t *testing.T, byLabel, byField string) {
		a, names := listed(t, handler, url.Values{"labelSelector": {byLabel}, "fieldSelector": {byField}})
		labelsOf, labelErr := labels.Parse(byLabel)
		fieldsOf, fieldErr := fields.ParseSelector(byField)
		if labelErr != nil || fieldErr != nil {
			require.Equal(t, 400, a.code, "%s", a.body)
			return
		}
		if a.code == 400 {
			return // fields that there are not, and selectors that are too long
		}
		require.Equal(t, 200, a.code, "%s", a.body)
		want := ""
		for _, w := range all {
			set := fields.Set{"metadata.name": w.Name, "metadata.namespace": w.Namespace, "spec.color": w.Spec.Color}
			if labelsOf.Matches(labels.Set(w.Labels)) && fieldsOf.Matches(set) {
				want += w.Name + " "
			}
		}
		require.Equal(t, want, names)
	})
}

// FuzzContinue sends tokens: what is not a token of this list is a bad request, and what
// is goes on where the list has ended.
func FuzzContinue(f *testing.F) {
	handler, _ := fuzzed(f)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+inDefault+"?limit=1", nil))
	token := answer{body: w.Body.String()}.str("metadata.continue")
	f.Add(token)
	f.Add(token[:len(token)-1])
	f.Add("eyJjIjoiYSIsImwiOiJiIn0")
	f.Add("e30=")
	f.Fuzz(func(t *testing.T, token string) {
		if token == "" {
			return // none
		}
		a, names := listed(t, handler, url.Values{"continue": {token}})
		if a.code == 200 {
			require.Equal(t, "w1 w2 ", names)
			return
		}
		require.Contains(t, []int{400, 410}, a.code, "%s", a.body) // no token, or one of a revision that is gone
	})
}
