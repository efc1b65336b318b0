package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

func TestServe_ClientsDefineKindsThatLast(t *testing.T) {
	opts := server.Options{Data: "bolt:" + filepath.Join(t.TempDir(), "data"), AllowCRDs: true}
	url, stop := serving(t, opts)
	text, err := yaml.YAMLToJSON([]byte(gadgets))
	require.NoError(t, err)
	const defined = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	code, answer := call(t, "POST", url+defined, "", string(text))
	require.Equal(t, 201, code, answer)
	for !strings.Contains(answer, `"type":"Established"`) {
		_, answer = call(t, "GET", url+defined+"/gadgets.example.com", "", "")
	}
	const path = "/apis/example.com/v1/namespaces/default/gadgets"
	code, created := call(t, "POST", url+path, "", `{"metadata":{"name":"a"}}`)
	require.Equal(t, 201, code, created)
	stop()

	out := newServedOutput()
	url, stop = servingTo(t, out, opts)
	code, found := call(t, "GET", url+path+"/a", "", "")
	require.Equal(t, 200, code)
	require.Equal(t, created, found)
	stop()
	require.Contains(t, out.text.String(), "\n  customresourcedefinitions.apiextensions.k8s.io/v1\n  gadgets.example.com/v1\n")
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
	}
}
