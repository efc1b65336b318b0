package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// shown is a definition with what a replica must know of it, besides what discovery tells.
const shown = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.com"}, "spec": {
	"group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [
		{"name": "v1beta1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}}}}}},
		{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}}}}},
			"deprecated": true, "deprecationWarning": "gadgets are old",
			"subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
			"additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
			"selectableFields": [{"jsonPath": ".spec.color"}]}]}}`

// cached asks for a list of what a replica has, for which it does not need its origin.
const cached = "?resourceVersion=0"

// servingShown runs a server at which a client has created the definition, and two objects of it.
func servingShown(t *testing.T) (url string, stop func()) {
	t.Helper()
	url, stop = serving(t, server.Options{Data: "memory", AllowCRDs: true})
	define(t, url, shown)
	create(t, url, "a", "red")
	create(t, url, "b", "blue")
	return url, stop
}

// create creates a gadget.
func create(t *testing.T, url, name, color string) {
	t.Helper()
	code, answer := call(t, "POST", url+gadgetsPath, "", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"size":3,"color":%q}}`, name, color))
	require.Equal(t, 201, code, answer)
}

// eventually waits until the gadgets at url are answered with a code and a text.
func eventually(t *testing.T, url string, code int, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		is, answer := call(t, "GET", url+gadgetsPath, "", "")
		return is == code && strings.Contains(answer, text)
	}, time.Minute, time.Millisecond)
}

// awaitCached waits until the server at url has read the gadgets. A client is told to come back until then.
func awaitCached(t *testing.T, url string) {
	t.Helper()
	code, list := call(t, "GET", url+gadgetsPath+cached, "", "")
	require.Equal(t, 200, code, list)
}

// proxyTo returns a proxy to a server.
func proxyTo(t *testing.T, origin string) *httputil.ReverseProxy {
	t.Helper()
	at, err := url.Parse(origin)
	require.NoError(t, err)
	return httputil.NewSingleHostReverseProxy(at)
}

// table requests the objects at url as a table, again as long as the answer is to come back, as it may be while the
// server reads its objects.
func table(t *testing.T, url string) (columns []string, rows [][]any, warning string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	for resp.StatusCode == http.StatusTooManyRequests {
		require.NoError(t, resp.Body.Close())
		resp, err = http.DefaultClient.Do(req)
		require.NoError(t, err)
	}
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
		awaitCached(t, url)
		columns, rows, warning := table(t, url+gadgetsPath+"?fieldSelector=spec.color=red")
		require.Equal(t, []string{"Name", "Size"}, columns)
		require.Equal(t, [][]any{{"a", float64(3)}}, rows)
		require.Contains(t, warning, "gadgets are old")
	}
	columns, rows, _ := table(t, origin+definitionsPath)
	require.Contains(t, columns, "Versions")
	replicated, replicatedRows, _ := table(t, replica+definitionsPath)
	require.Equal(t, columns, replicated)
	require.Equal(t, rows, replicatedRows)
	code, scaled := call(t, "PUT", replica+gadgetsPath+"/a/scale", "", `{"metadata":{"name":"a"},"spec":{"replicas":5}}`)
	require.Equal(t, 200, code, scaled)
	_, rows, _ = table(t, origin+gadgetsPath+"?fieldSelector=spec.color=red")
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
	code, patched = call(t, "STRATEGIC", replica+definitionsPath+"/gadgets.example.com", "", `{"metadata":{"labels":{"team":"a"}}}`)
	require.Equal(t, 200, code, patched)
	_, patched = call(t, "GET", origin+definitionsPath+"/gadgets.example.com", "", "")
	require.Contains(t, patched, `"labels":{"team":"a"}`)
}

// A replica whose origin does not let it know the definitions serves what discovery tells, and says
// what is missing.
func TestServe_AReplicaServesKindsWithoutTheirDefinitions(t *testing.T) {
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	through := proxyTo(t, origin)
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
		"none":       {200, list(""), ""},
	} {
		between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != definitionsPath {
				through.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Query().Has("watch") {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			w.WriteHeader(c.code)
			_, _ = io.WriteString(w, c.answer)
		}))
		log := newServedOutput()
		replica, stop := serving(t, server.Options{Data: "memory", Upstream: between.URL, Log: log})
		awaitCached(t, replica)
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
	through := proxyTo(t, origin)
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

// Clients of a replica find the kinds that are defined at its origin meanwhile, in their newest form.
func TestServe_AReplicaFollowsTheDefinitionsOfItsOrigin(t *testing.T) {
	origin, stopOrigin := serving(t, server.Options{Data: "memory", AllowCRDs: true})
	defer stopOrigin()
	log := newServedOutput()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin, Log: log})
	defer stopReplica()
	eventually(t, replica, 404, "")
	for range 2 { // the second kind has other objects under the names of the first one
		code, answer := call(t, "POST", replica+definitionsPath, "", shown)
		require.Equal(t, 201, code, answer)
		eventually(t, replica, 200, `"items":[]`)
		create(t, replica, "a", "red")
		awaitCached(t, replica)
		columns, _, _ := table(t, replica+gadgetsPath)
		require.Equal(t, []string{"Name", "Size"}, columns)

		resp, err := http.Get(replica + gadgetsPath + "?watch=1")
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
		code, answer = call(t, "DELETE", origin+definitionsPath+"/gadgets.example.com", "", "")
		require.Equal(t, 200, code, answer)
		events, err := io.ReadAll(resp.Body)
		require.NoError(t, err, "the watch ends")
		require.Contains(t, string(events), `"type":"DELETED"`)
		eventually(t, replica, 404, "")
	}
	require.Contains(t, log.String(), `msg="a kind is served as the upstream server defines it" kind=gadgets.example.com version=v1`)
	require.Contains(t, log.String(), `msg="a kind is served no more: its definition at the upstream server is gone" kind=gadgets.example.com`)
}

// The kind is served all the time.
func TestServe_AReplicaShowsAKindAsItIsDefinedNow(t *testing.T) {
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin})
	defer stopReplica()
	awaitCached(t, replica)
	for _, column := range []string{"Width", "Depth"} {
		code, answer := call(t, "APPLY", origin+definitionsPath+"/gadgets.example.com?fieldManager=m&force=true", "", strings.Replace(shown, `"Size"`, `"`+column+`"`, 1))
		require.Equal(t, 200, code, answer)
		for done := false; !done; {
			columns, rows, _ := table(t, replica+gadgetsPath+cached)
			require.Len(t, rows, 2)
			done = slices.Contains(columns, column)
			for _, url := range []string{origin, replica} {
				code, answer := callOnce(t, "GET", url+gadgetsPath, "", "")
				require.Equal(t, 200, code, "%s: %s", url, answer)
			}
		}
	}
}

// A server reads its manifests when it starts, and its replicas follow it.
func TestServe_AReplicaFollowsTheManifestsOfItsOrigin(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "gadgets.json")
	start := func(definition string) (*httputil.ReverseProxy, func()) {
		require.NoError(t, os.WriteFile(manifest, []byte(definition), 0o600))
		origin, stop := serving(t, server.Options{Data: "memory", CRDs: []string{manifest}})
		return proxyTo(t, origin), stop
	}
	var origin atomic.Pointer[httputil.ReverseProxy]
	now, stop := start(shown)
	origin.Store(now)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { origin.Load().ServeHTTP(w, r) }))
	defer between.Close()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: between.URL})
	defer stopReplica()
	awaitCached(t, replica)
	columns, _, _ := table(t, replica+gadgetsPath)
	require.Equal(t, []string{"Name", "Size"}, columns)

	next, stopNext := start(strings.Replace(shown, `"Size"`, `"Width"`, 1))
	defer stopNext()
	origin.Store(next)
	between.CloseClientConnections()
	stop()
	for !slices.Contains(columns, "Width") {
		columns, _, _ = table(t, replica+gadgetsPath+cached)
	}
}

// The replica finds the kind in discovery, and its definition gone before it watches the definitions.
func TestServe_AReplicaServesNoKindWhoseDefinitionGoesAsItStarts(t *testing.T) {
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	through := proxyTo(t, origin)
	var lists atomic.Int32
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == definitionsPath && lists.Add(1) == 2 {
			code, answer := call(t, "DELETE", origin+definitionsPath+"/gadgets.example.com", "", "")
			require.Equal(t, 200, code, answer)
			for code == 200 {
				code, _ = call(t, "GET", origin+definitionsPath+"/gadgets.example.com", "", "")
			}
		}
		through.ServeHTTP(w, r)
	}))
	defer between.Close()
	defer between.CloseClientConnections()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: between.URL})
	defer stopReplica()
	eventually(t, replica, 404, "")
	require.Greater(t, lists.Load(), int32(1))
}

// A definition that the replica cannot use changes nothing at the replica, which says so.
func TestServe_AReplicaKeepsAKindWhoseDefinitionItCannotUse(t *testing.T) {
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	through := proxyTo(t, origin)
	through.ModifyResponse = func(resp *http.Response) error {
		if resp.Request.URL.Path == definitionsPath && resp.Request.URL.Query().Has("watch") {
			resp.Body = replacing{resp.Body}
		}
		return nil
	}
	between := httptest.NewServer(through)
	defer between.Close()
	defer between.CloseClientConnections()
	log := newServedOutput()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: between.URL, Log: log})
	defer stopReplica()
	code, list := call(t, "GET", replica+definitionsPath+cached, "", "") // so that the replica has the change by its watch
	require.Equal(t, 200, code, list)
	code, answer := call(t, "APPLY", origin+definitionsPath+"/gadgets.example.com?fieldManager=m&force=true", "", strings.Replace(shown, `"Size"`, `"Width"`, 1))
	require.Equal(t, 200, code, answer)
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), `msg="a kind is not served as the upstream server defines it"`)
	}, time.Minute, time.Millisecond)
	awaitCached(t, replica)
	columns, rows, _ := table(t, replica+gadgetsPath+cached)
	require.Equal(t, []string{"Name", "Size"}, columns)
	require.Len(t, rows, 2)
}

// replacing is the body of a watch in which definitions are of a scope that does not exist. It replaces one
// word by another of the same length, which no read may divide: events come in one piece.
type replacing struct{ io.ReadCloser }

func (r replacing) Read(into []byte) (int, error) {
	n, err := r.ReadCloser.Read(into)
	copy(into, bytes.ReplaceAll(into[:n], []byte(`"Namespaced"`), []byte(`"Galactical"`)))
	return n, err
}
