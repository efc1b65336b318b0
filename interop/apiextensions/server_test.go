package apiextensions

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/registry/crd/cel"
	"github.com/watchmill/watchmill/serve"
)

// kindsFile has the kinds that both serve: widgets, whose schema has everything that schemas
// have except rules in CEL, things, of the whole cluster, which may have any fields, and gears,
// which have rules.
const kindsFile = "testdata/kinds.yaml"

// patience is how long anything may take on the slowest machine.
const patience = 5 * time.Minute

// server is one of the two, with what its answers have said that later requests refer to.
type server struct {
	url, token string
	client     *http.Client
	said       map[string]string
}

// newOriginal starts Kubernetes' server in a process of its own.
func newOriginal(t *testing.T) *server {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), originalVariable+"="+t.TempDir())
	process.Stderr = t.Output()
	input, err := process.StdinPipe()
	require.NoError(t, err)
	output, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		require.NoError(t, input.Close())
		require.NoError(t, process.Wait())
	})
	line, err := bufio.NewReader(output).ReadBytes('\n')
	require.NoError(t, err, "the server must say where it is")
	var at location
	require.NoError(t, json.Unmarshal(line, &at))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(at.CA))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: at.ServerName}}
	t.Cleanup(transport.CloseIdleConnections)
	return &server{url: at.URL, token: at.Token, client: &http.Client{Transport: transport}, said: map[string]string{}}
}

// newOurs starts a server of this module.
func newOurs(t *testing.T) *server {
	t.Helper()
	text, err := os.ReadFile(kindsFile)
	require.NoError(t, err)
	return serveKinds(t, text)
}

// serveKinds starts a server of this module of the kinds that manifests define.
func serveKinds(t *testing.T, manifests []byte) *server {
	t.Helper()
	kinds, err := crd.Options{Rules: cel.Rules{}}.Parse(bytes.NewReader(manifests))
	require.NoError(t, err)
	var resources []serve.Provider
	for _, kind := range kinds {
		require.Empty(t, kind.Notes, "everything in the manifest must have an effect")
		cfg := kind.Config()
		cfg.Apply, cfg.GarbageCollection = apply.New, true // as that of Kubernetes has it
		store, err := registry.New(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		resources = append(resources, store)
	}
	handler, err := serve.New(serve.Config{Resources: resources})
	require.NoError(t, err)
	h := httptest.NewServer(handler)
	t.Cleanup(h.Close)
	return &server{url: h.URL, client: h.Client(), said: map[string]string{}}
}
