package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	gadgetsPath     = "/apis/example.com/v1/namespaces/default/gadgets"
)

// define creates the definition of gadgets, and returns when they are served.
func define(t *testing.T, url, definition string) {
	t.Helper()
	code, answer := call(t, "POST", url+definitionsPath, "", definition)
	require.Equal(t, 201, code, answer)
	for !strings.Contains(answer, `"type":"Established"`) {
		_, answer = call(t, "GET", url+definitionsPath+"/gadgets.example.com", "", "")
	}
}

func TestServe_ClientsDefineKindsThatLast(t *testing.T) {
	opts := server.Options{Data: "bolt:" + filepath.Join(t.TempDir(), "data"), AllowCRDs: true}
	url, stop := serving(t, opts)
	text, err := yaml.YAMLToJSON([]byte(gadgets))
	require.NoError(t, err)
	define(t, url, string(text))
	code, created := call(t, "POST", url+gadgetsPath, "", `{"metadata":{"name":"a"}}`)
	require.Equal(t, 201, code, created)
	stop()

	out := newServedOutput()
	url, stop = servingTo(t, out, opts)
	code, found := call(t, "GET", url+gadgetsPath+"/a", "", "")
	require.Equal(t, 200, code)
	require.Equal(t, created, found)
	stop()
	require.Contains(t, out.text.String(), "\n  customresourcedefinitions.apiextensions.k8s.io/v1\n  gadgets.example.com/v1\n")
}

// Clients learn of a kind what discovery does not tell them, and wait until it is established. They cannot
// change it: the server has it from its manifest.
func TestServe_ShowsTheDefinitionsOfItsManifests(t *testing.T) {
	const widgets = definitionsPath + "/widgets.example.com"
	var identities []string
	for range 2 {
		url, stop := serving(t, server.Options{Data: "memory"})
		code, text := call(t, "GET", url+widgets, "", "")
		require.Equal(t, 200, code, text)
		require.Contains(t, text, `"type":"Established"`)
		o := &unstructured.Unstructured{}
		require.NoError(t, o.UnmarshalJSON([]byte(text)))
		identities = append(identities, string(o.GetUID()))
		for _, write := range []string{"PUT", "DELETE", "APPLY"} {
			code, refused := call(t, write, url+widgets+"?fieldManager=m", "", text)
			require.Equal(t, 405, code, refused)
		}
		stop()
	}
	require.Equal(t, identities[0], identities[1], "replicas take another one for another kind")
}

// A client waits for its definition to be established, and is not told why it is not.
func TestServe_SaysWhatKeepsADefinitionFromBeingServed(t *testing.T) {
	tape := func(_ context.Context, _, kind string, schema store.Schema, _ func(error)) (backend.Backend, error) {
		if kind == "gadgets.example.com" {
			return nil, errTorn
		}
		return memory.New(schema, memory.Options{})
	}
	log := newServedOutput()
	url, stop := serving(t, server.Options{AllowCRDs: true, Data: "tape:reel", Storages: server.Storages{"tape": tape}, Log: log})
	defer stop()
	text, err := yaml.YAMLToJSON([]byte(gadgets))
	require.NoError(t, err)
	code, answer := call(t, "POST", url+definitionsPath, "", string(text))
	require.Equal(t, 201, code, answer)
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), `msg="a definition is not served"`) && strings.Contains(log.String(), "the tape is torn")
	}, time.Minute, time.Millisecond)
}

// The versions of a kind are of the same objects, wherever these are. Each shows the fields that
// its schema has, which are none in v1beta1.
func TestServe_AllVersionsHaveTheObjects(t *testing.T) {
	origin, stop := serving(t, server.Options{Data: "memory", Metrics: true})
	defer stop()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin, CRDs: []string{manifests}, Metrics: true})
	defer stopReplica()
	older := strings.Replace(inDefault, "v1", "v1beta1", 1)
	code, answer := call(t, "POST", origin+older, "", `{"metadata":{"name":"a"}}`)
	require.Equal(t, 201, code, answer)
	code, answer = call(t, "APPLY", origin+inDefault+"/a?fieldManager=m", "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 200, code, answer)
	for _, url := range []string{origin, replica} {
		code, first := call(t, "GET", url+inDefault+"/a", "", "")
		require.Equal(t, 200, code, "%s: %s", url, first)
		require.Contains(t, first, `"apiVersion":"example.com/v1"`)
		code, second := call(t, "GET", url+older+"/a", "", "")
		require.Equal(t, 200, code, "%s: %s", url, second)
		require.Equal(t, strings.NewReplacer(`:"example.com/v1","kind"`, `:"example.com/v1beta1","kind"`, `,"spec":{"color":"grey","size":3}`, "").Replace(first), second)
		code, page := call(t, "GET", url+"/metrics", "", "")
		require.Equal(t, 200, code, page)
		for _, group := range []string{"example.com", "example.com/v1beta1"} {
			require.Contains(t, page, `watchmill_ready{group="`+group+`",resource="widgets"}`, "each version has an engine")
		}
	}
}

// Objects of another scope would be listed, and could be neither read nor deleted.
func TestServe_RefusesAScopeThatItsObjectsDoNotHave(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(manifests)
	require.NoError(t, err)
	clustered := filepath.Join(dir, "clustered.yaml")
	require.NoError(t, os.WriteFile(clustered, []byte(strings.Replace(string(text), "scope: Namespaced", "scope: Cluster", 1)), 0o600))
	for _, c := range []struct{ file, manifest, path, other, problem string }{
		{"one", manifests, inDefault, clustered, `--crd has widgets.example.com with the scope Cluster, in ` + clustered + `, but --data has such objects with the scope Namespaced, as "default/a": set spec.scope`},
		{"two", clustered, "/apis/example.com/v1/widgets", manifests, `--crd has widgets.example.com with the scope Namespaced, in ` + manifests + `, but --data has such objects with the scope Cluster, as "a": set spec.scope`},
	} {
		opts := server.Options{Data: "bolt:" + filepath.Join(dir, c.file), CRDs: []string{c.manifest}}
		url, stop := serving(t, opts)
		code, created := call(t, "POST", url+c.path, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
		require.Equal(t, 201, code, created)
		stop()
		_, errs, status := command(t.Context(), "serve", "--listen", "127.0.0.1:0", "--data", opts.Data, "--crd", c.other)
		require.Equal(t, exitUsage, status, errs)
		require.Contains(t, errs, c.problem)
		url, stop = serving(t, opts)
		code, _ = call(t, "DELETE", url+c.path+"/a", "", "")
		require.Equal(t, 200, code)
		stop()
		opts.CRDs = []string{c.other}
		_, stop = serving(t, opts) // none is left
		stop()
	}
}

// A garbage collector is told of deletions of all kinds: those of manifests, and those that clients define.
func TestServe_TellsAGarbageCollectorOfThePolicy(t *testing.T) {
	url, stop := serving(t, server.Options{Data: "memory", CRDs: []string{manifests}, AllowCRDs: true, GarbageCollector: true})
	defer stop()
	text, err := yaml.YAMLToJSON([]byte(strings.Replace(gadgets, "kind: Widget}", "kind: Gadget}", 1)))
	require.NoError(t, err)
	define(t, url, string(text))
	for _, path := range []string{inDefault, strings.Replace(inDefault, "v1", "v1beta1", 1), gadgetsPath} {
		code, answer := call(t, "POST", url+path, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
		require.Equal(t, 201, code, answer)
		code, answer = call(t, "DELETE", url+path+"/a?propagationPolicy=Orphan", "", "")
		require.Equal(t, 200, code, answer)
		require.Contains(t, answer, `"finalizers":["orphan"]`)
		code, answer = call(t, "DELETE", url+path+"/a?propagationPolicy=Background", "", "")
		require.Equal(t, 200, code, answer)
		require.Contains(t, answer, `"status":"Success"`)
	}
	code, answer := call(t, "DELETE", url+definitionsPath+"/gadgets.example.com?propagationPolicy=Orphan", "", "")
	require.Equal(t, 200, code, answer)
	require.Contains(t, answer, `"orphan"`)
}
