package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

const (
	manifests = "../../../registry/crd/testdata/widgets.yaml"
	inDefault = "/apis/example.com/v1/namespaces/default/widgets"
)

// patience is how long anything may take on the slowest machine.
const patience = 5 * time.Minute

// serving runs the command with widgets and what clients define, with quick draining, until stop is called.
func serving(t *testing.T, data string) (url string, stop func()) {
	t.Helper()
	return servingWith(t, server.Flags{CRD: []string{manifests}, AllowCRDs: true, Data: data})
}

// servingWith is serving with other flags.
func servingWith(t *testing.T, flags server.Flags) (url string, stop func()) {
	t.Helper()
	return servingTo(t, io.Discard, flags)
}

// servingTo is servingWith with a log.
func servingTo(t *testing.T, log io.Writer, flags server.Flags) (url string, stop func()) {
	t.Helper()
	out, announced := io.Pipe()
	flags.Listen = "127.0.0.1:0"
	command := &serveCommand{Flags: flags}
	opts := command.options(&streams{announced, log})
	opts.Limits = serve.Limits{ShutdownDelay: 1, DrainWatches: 1}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := server.Run(ctx, opts)
		announced.CloseWithError(err)
		ended <- err
	}()
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, lines) }() // until the command ends
	return strings.TrimSpace(strings.TrimPrefix(first, "serving ")), func() {
		t.Helper()
		cancel()
		require.NoError(t, <-ended)
	}
}

// send sends a request, and returns the answer's status and its metadata.
func send(t *testing.T, method, url, body string) (code int, metadata map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer struct{ Metadata map[string]any }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer.Metadata
}

// Two servers over one prefix have the same objects at the same revisions: what is created
// at one is watched, changed and deleted at the other, and is there after a restart.
func TestServe_TwoServersOverOnePrefix(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	place := "etcd:" + etcdtest.Start(t, nil).Endpoint + "/shop"
	one, stopOne := serving(t, place)
	two, stopTwo := serving(t, place)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", two+inDefault+"?watch=1", nil)
	require.NoError(t, err)
	watch, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer watch.Body.Close()
	frames := json.NewDecoder(watch.Body)
	next := func() (what string, metadata map[string]any) {
		t.Helper()
		var frame struct {
			Type   string
			Object struct{ Metadata map[string]any }
		}
		require.NoError(t, frames.Decode(&frame))
		return frame.Type, frame.Object.Metadata
	}

	code, made := send(t, "POST", one+inDefault, `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code)
	what, seen := next()
	require.Equal(t, "ADDED", what)
	require.Equal(t, made, seen, "the same metadata, the revision included")

	stale := `{"metadata":{"name":"a","resourceVersion":"` + made["resourceVersion"].(string) + `"},"spec":{"size":4}}`
	code, changed := send(t, "PUT", two+inDefault+"/a", stale)
	require.Equal(t, 200, code)
	what, seen = next()
	require.Equal(t, "MODIFIED", what)
	require.Equal(t, changed["resourceVersion"], seen["resourceVersion"])
	code, _ = send(t, "PUT", one+inDefault+"/a", strings.Replace(stale, `"size":4`, `"size":5`, 1))
	require.Equal(t, 409, code, "the other server has changed it")
	watch.Body.Close()
	stopOne()
	stopTwo()

	again, stopAgain := serving(t, place)
	code, found := send(t, "GET", again+inDefault+"/a", "")
	require.Equal(t, 200, code)
	require.Equal(t, changed, found)
	code, _ = send(t, "DELETE", again+inDefault+"/a", "")
	require.Equal(t, 200, code)
	stopAgain()

	other, stopOther := serving(t, place+"/else")
	code, _ = send(t, "GET", other+inDefault+"/a", "")
	require.Equal(t, 404, code)
	stopOther()
}

// An operator learns from the log which members of the cluster cannot be reached.
func TestServe_LogsWhatIsWrongWithTheCluster(t *testing.T) {
	etcd := etcdtest.Start(t, nil).Endpoint
	log := &lockedLog{}
	_, stop := servingTo(t, log, server.Flags{CRD: []string{manifests}, Data: "etcd:127.0.0.1:1," + etcd + "/logged"})
	stop()
	require.Contains(t, log.String(), `msg="the storage of a kind has a problem" kind=widgets.example.com`)
	require.Contains(t, log.String(), "127.0.0.1:1")
}

// lockedLog is a log that is written to from any goroutine.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Rules in CEL hold for the kinds of manifests, and for those that clients define.
func TestServe_EvaluatesRules(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	url, stop := serving(t, "memory")
	defer stop()
	code, _ := send(t, "POST", url+inDefault, `{"metadata":{"name":"a"},"spec":{"size":13}}`)
	require.Equal(t, 422, code, "the manifest has the rule that sizes are not 13")
	code, _ = send(t, "POST", url+inDefault, `{"metadata":{"name":"a"},"spec":{"size":12}}`)
	require.Equal(t, 201, code)
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gears.example.com"},"spec":{
		"group":"example.com","scope":"Namespaced","names":{"plural":"gears","kind":"Gear"},"versions":[{"name":"v1","served":true,"storage":true,
			"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-validations":[{"rule":"RULE"}]}}}]}}`
	for rule, want := range map[string]int{"self.teeth > 1": 422, "self.metadata.name != 'x'": 201} {
		code, _ = send(t, "POST", url+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", strings.Replace(definition, "RULE", rule, 1))
		require.Equal(t, want, code, rule)
	}
}

// A manifest whose rules do not compile is a bad manifest.
func TestServe_RefusesRulesThatDoNotCompile(t *testing.T) {
	text, err := os.ReadFile(manifests)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "widgets.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "self.size != 13", "self.sise != 13", 1)), 0o600))
	_, errs, status := command(t.Context(), "serve", "--listen=127.0.0.1:0", "--crd", file)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "undefined field 'sise'")
}

func TestServe_WrongUsageExitsWithTwo(t *testing.T) {
	for mention, args := range map[string][]string{
		"give memory, etcd:WHERE, bolt:WHERE": {"--crd", manifests, "--data=tape:0"},
		"etcd:WHERE":                          {"--crd", manifests, "--data=etcd:"},
		"watchmill-etcd: invalid configuration: --data is etcd:127.0.0.1:1/x/, which ends with a slash; give etcd:HOST:PORT": {"--crd", manifests, "--data=etcd:127.0.0.1:1/x/"},
		"--data is etcd:127.0.0.1:1/x//y, whose prefix is not a path":                                                        {"--crd", manifests, "--data=etcd:127.0.0.1:1/x//y"},
		`--data is etcd:hostonly/x, where "hostonly" is not a host and a port`:                                               {"--crd", manifests, "--data=etcd:hostonly/x"},
		`--data is etcd:/x, where "" is not a host and a port`:                                                               {"--crd", manifests, "--data=etcd:/x"},
		`--data is etcd::1/x, where ":1" is not a host and a port`:                                                           {"--crd", manifests, "--data=etcd::1/x"},
		`--data is etcd:host:/x, where "host:" is not a host and a port`:                                                     {"--crd", manifests, "--data=etcd:host:/x"},
		"--etcd-ca is for objects in etcd, and --data is memory; give --data etcd:HOST:PORT":                                 {"--crd", manifests, "--etcd-ca=ca.pem"},
		"--etcd-cert is for objects in etcd, and --data is bolt:x;":                                                          {"--crd", manifests, "--data=bolt:x", "--etcd-cert=cert.pem", "--etcd-key=key.pem"},
		"--etcd-user is for objects in etcd, and --data is memory;":                                                          {"--crd", manifests, "--etcd-user=shop", "--etcd-password-file=password"},
		"--crd is missing; give a manifest, a server to follow with --upstream, or --allow-crds, or --core-kinds":            {"--data=memory"},
		"--core-kinds cannot be given together with --upstream: a replica has the kinds":                                     {"--core-kinds", "--upstream=http://127.0.0.1:1"},
		"unknown flag": {"--fast"},
	} {
		_, errs, status := command(t.Context(), append([]string{"serve", "--listen=127.0.0.1:0"}, args...)...)
		require.Equal(t, exitUsage, status, "%v: %s", args, errs)
		require.Contains(t, errs, mention)
	}
}
