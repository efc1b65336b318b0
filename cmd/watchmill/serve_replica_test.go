package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// A replica serves what its origin does, and passes writes on.
func TestServe_UpstreamIsAReplica(t *testing.T) {
	origin, stopOrigin := serving(t, server.Options{Data: "memory"})
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin})
	defer stopOrigin()
	defer stopReplica()
	code, made := call(t, "POST", replica+inDefault, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code, made)
	for _, url := range []string{origin, replica} {
		code, got := call(t, "GET", url+inDefault+"/a", "", "")
		require.Equal(t, 200, code)
		require.JSONEq(t, made, got)
	}
	const a = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":4}}`
	code, conflict := call(t, "APPLY", replica+inDefault+"/a?fieldManager=one", "", a)
	require.Equal(t, 409, code, conflict)
	code, applied := call(t, "APPLY", replica+inDefault+"/a?fieldManager=one&force=true", "", a)
	require.Equal(t, 200, code, applied)
	code, refused := call(t, "POST", replica+inDefault, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"size":"large"}}`)
	require.Equal(t, 422, code, "the origin's schema decides: %s", refused)
	code, _ = call(t, "GET", replica+inDefault+"/a/scale", "", "")
	require.Equal(t, 404, code, "discovery does not tell where a kind has its replicas")
	code, discovered := call(t, "GET", replica+"/apis/example.com/v1", "", "")
	require.Equal(t, 200, code)
	require.Contains(t, discovered, `"widgets/status"`)
}

// What a replica shows is old by then, or nothing.
func TestServe_AReplicaSaysThatItsOriginIsGone(t *testing.T) {
	origin, stopOrigin := serving(t, server.Options{Data: "memory"})
	for _, watches := range []bool{true, false} {
		log := newServedOutput()
		replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin, CRDs: []string{manifests}, Log: log})
		defer stopReplica()
		says := "engine=widgets.example.com error=\"storage is unavailable"
		if watches {
			says = "the upstream server cannot be reached, or has ended a watch"
			listed := func(what string) func() bool {
				return func() bool {
					_, list := call(t, "GET", replica+inDefault+"?resourceVersion=0", "", "")
					return strings.Contains(list, what)
				}
			}
			require.Eventually(t, listed(`"items":[]`), time.Minute, time.Millisecond)
			code, created := call(t, "POST", origin+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
			require.Equal(t, 201, code, created)
			require.Eventually(t, listed(`"name":"a"`), time.Minute, time.Millisecond, "which comes by the watch")
			stopOrigin()
		}
		require.Eventually(t, func() bool { return strings.Contains(log.String(), says) }, time.Minute, time.Millisecond)
	}
}

func TestServe_RefusesAnOriginWithoutKinds(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		_, _ = io.WriteString(w, `{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []}`)
	}))
	defer origin.Close()
	_, errs, status := command(t.Context(), "serve", "--upstream", origin.URL, "--listen", "127.0.0.1:0")
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "--upstream is "+origin.URL+", which serves no kind")
}

// Tokens expire: the replica of a cluster has another one every hour. Its clients cannot help it
// if it has none that is good.
func TestServe_AReplicaReadsItsTokenAnew(t *testing.T) {
	dir := t.TempDir()
	tokens, token := filepath.Join(dir, "tokens"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(tokens, []byte("first,alice,1\nsecond,bob,2\n"), 0o600))
	write := func(text string) { require.NoError(t, os.WriteFile(token, []byte(text), 0o600)) }
	write("first\n")
	origin, stopOrigin := serving(t, server.Options{Data: "memory", TokenFile: tokens})
	defer stopOrigin()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin, UpstreamTokenFile: token})
	defer stopReplica()
	for _, c := range []struct {
		token, name string
		code        int
	}{{"first", "a", 201}, {"expired", "b", 503}, {"", "c", 500}, {"second", "d", 201}} {
		write(c.token)
		code, answer := call(t, "POST", replica+inDefault, "", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"size":3}}`, c.name))
		require.Equal(t, c.code, code, "with the token %q: %s", c.token, answer)
	}
}

// A replica that has the manifest knows where the replicas are, and has the origin set them.
func TestServe_AReplicaPassesScalesOn(t *testing.T) {
	origin, stopOrigin := serving(t, server.Options{Data: "memory"})
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin, CRDs: []string{manifests}})
	defer stopOrigin()
	defer stopReplica()
	code, made := call(t, "POST", origin+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code, made)
	code, passed := call(t, "PUT", replica+inDefault+"/a/scale", "", `{"metadata":{"name":"a"},"spec":{"replicas":5}}`)
	require.Equal(t, 200, code, passed)
	code, here := call(t, "GET", origin+inDefault+"/a/scale", "", "")
	require.Equal(t, 200, code)
	require.JSONEq(t, here, passed)
	code, refused := call(t, "PUT", replica+inDefault+"/a/scale", "", `{"metadata":{"name":"a"},"spec":{"replicas":101}}`)
	require.Equal(t, 422, code, refused)
	code, conflict := call(t, "PUT", replica+inDefault+"/a/scale", "", `{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"replicas":6}}`)
	require.Equal(t, 409, code, conflict)
	code, missing := call(t, "PUT", replica+inDefault+"/b/scale", "", `{"metadata":{"name":"b"},"spec":{"replicas":6}}`)
	require.Equal(t, 404, code, missing)
}

// shown is a definition with what a replica must know of it, besides what discovery tells.
const shown = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.com"}, "spec": {
	"group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [
		{"name": "v1beta1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}}}}}},
		{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}}}}},
			"deprecated": true, "deprecationWarning": "gadgets are old",
			"subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
			"additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
			"selectableFields": [{"jsonPath": ".spec.color"}]}]}}`

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	gadgetsPath     = "/apis/example.com/v1/namespaces/default/gadgets"
)

// servingShown runs a server at which a client has created the definition, and two objects of it.
func servingShown(t *testing.T) (url string, stop func()) {
	t.Helper()
	url, stop = serving(t, server.Options{Data: "memory", AllowCRDs: true})
	code, answer := call(t, "POST", url+definitionsPath, "", shown)
	require.Equal(t, 201, code, answer)
	for !strings.Contains(answer, `"type":"Established"`) {
		_, answer = call(t, "GET", url+definitionsPath+"/gadgets.example.com", "", "")
	}
	for name, color := range map[string]string{"a": "red", "b": "blue"} {
		code, answer = call(t, "POST", url+gadgetsPath, "", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"size":3,"color":%q}}`, name, color))
		require.Equal(t, 201, code, answer)
	}
	return url, stop
}

// table requests the objects at url as a table.
func table(t *testing.T, url string) (columns []string, rows [][]any, warning string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	var answer struct {
		ColumnDefinitions []struct{ Name string }
		Rows              []struct{ Cells []any }
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	for _, c := range answer.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	for _, r := range answer.Rows {
		rows = append(rows, r.Cells)
	}
	return columns, rows, resp.Header.Get("Warning")
}

// Clients of a replica see the tables that they see at its origin, select by the same fields, and scale.
func TestServe_AReplicaReadsTheDefinitionsOfItsOrigin(t *testing.T) {
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin})
	defer stopReplica()
	for _, url := range []string{origin, replica} {
		columns, rows, warning := table(t, url+gadgetsPath+"?fieldSelector=spec.color=red")
		require.Equal(t, []string{"Name", "Size"}, columns)
		require.Equal(t, [][]any{{"a", float64(3)}}, rows)
		require.Contains(t, warning, "gadgets are old")
	}
	code, scaled := call(t, "PUT", replica+gadgetsPath+"/a/scale", "", `{"metadata":{"name":"a"},"spec":{"replicas":5}}`)
	require.Equal(t, 200, code, scaled)
	_, rows, _ := table(t, origin+gadgetsPath+"?fieldSelector=spec.color=red")
	require.Equal(t, [][]any{{"a", float64(5)}}, rows)
}

// The origin completes and checks what is written, by the definition that it has by then, which may
// not be that of the replica's start.
func TestServe_AReplicaLeavesWritesToTheDefinitionOfItsOrigin(t *testing.T) {
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin})
	defer stopReplica()
	code, patched := call(t, "APPLY", origin+definitionsPath+"/gadgets.example.com?fieldManager=m&force=true", "",
		strings.ReplaceAll(shown, `"properties": {"spec"`, `"properties": {"more": {"type": "integer", "default": 7, "maximum": 9}, "spec"`))
	require.Equal(t, 200, code, patched)
	require.Eventually(t, func() bool {
		_, created := call(t, "POST", replica+gadgetsPath, "", `{"metadata":{"generateName":"c"}}`)
		return strings.Contains(created, `"more":7`)
	}, time.Minute, time.Millisecond)
	code, refused := call(t, "POST", replica+gadgetsPath, "", `{"metadata":{"name":"d"},"more":10}`)
	require.Equal(t, 422, code, refused)
}

// A replica whose origin does not let it know the definitions serves what discovery tells, and says
// what is missing.
func TestServe_AReplicaServesKindsWithoutTheirDefinitions(t *testing.T) {
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	at, err := url.Parse(origin)
	require.NoError(t, err)
	list := func(item string) string {
		return `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList", "metadata": {"resourceVersion": "1"}, "items": [` +
			strings.Replace(item, `"metadata": {`, `"metadata": {"resourceVersion": "1", `, 1) + `]}`
	}
	for name, c := range map[string]struct {
		code         int
		answer, says string
	}{
		"forbidden":  {403, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "not for you"}`, "the token must not list their definitions"},
		"not usable": {200, list(strings.Replace(shown, `"Namespaced"`, `"Galactic"`, 1)), "its definition cannot be used"},
		"of others":  {200, list(strings.Replace(shown, `"v1"`, `"v2"`, 1)), "which does not tell those of its version"},
		"gone":       {200, list(""), ""},
	} {
		through := httputil.NewSingleHostReverseProxy(at)
		between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != definitionsPath || r.URL.Query().Has("watch") {
				through.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.code)
			_, _ = io.WriteString(w, c.answer)
		}))
		log := newServedOutput()
		replica, stop := serving(t, server.Options{Data: "memory", Upstream: between.URL, Log: log})
		columns, rows, _ := table(t, replica+gadgetsPath)
		require.Equal(t, []string{"Name", "Age"}, columns, name)
		require.Len(t, rows, 2, name)
		require.Contains(t, log.String(), c.says, name)
		stop()
		between.CloseClientConnections()
		between.Close()
	}
}

func TestServe_AReplicaWhoseOriginFailsToListDefinitionsDoesNotStart(t *testing.T) {
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	at, err := url.Parse(origin)
	require.NoError(t, err)
	through := httputil.NewSingleHostReverseProxy(at)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == definitionsPath {
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		}
		through.ServeHTTP(w, r)
	}))
	defer between.Close()
	_, errs, status := command(t.Context(), "serve", "--upstream", between.URL, "--listen", "127.0.0.1:0")
	require.Equal(t, exitFailed, status, errs)
	require.Contains(t, errs, "--upstream: the definitions of the kinds: ")
}
