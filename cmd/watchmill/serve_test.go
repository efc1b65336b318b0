package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

const manifests = "../../registry/crd/testdata/widgets.yaml"

// servedOutput is what a command has written, while it still writes.
type servedOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
	wake chan struct{}
}

func newServedOutput() *servedOutput { return &servedOutput{wake: make(chan struct{}, 1)} }

func (o *servedOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

// url returns the address that was told, once it was.
func (o *servedOutput) url(t *testing.T) string {
	t.Helper()
	for {
		o.mu.Lock()
		text := o.text.String()
		o.mu.Unlock()
		if _, after, found := strings.Cut(text, "serving "); found {
			if url, _, whole := strings.Cut(after, "\n"); whole {
				return url
			}
		}
		select {
		case <-o.wake:
		case <-time.After(time.Minute):
			t.Fatal("it does not serve")
		}
	}
}

// serving runs the command until stop is called.
func serving(t *testing.T, opts server.Options) (url string, stop func()) {
	t.Helper()
	return servingTo(t, newServedOutput(), opts)
}

// servingTo is serving with the output, which can be read after stop.
func servingTo(t *testing.T, out *servedOutput, opts server.Options) (url string, stop func()) {
	t.Helper()
	opts.Listen, opts.Out, opts.Log = cmp.Or(opts.Listen, "127.0.0.1:0"), out, cmp.Or(opts.Log, io.Discard)
	if opts.Upstream == "" && opts.CRDs == nil && !opts.AllowCRDs {
		opts.CRDs = []string{manifests}
	}
	opts.Limits = serve.Limits{ShutdownDelay: 1, DrainWatches: 1}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, opts) }()
	return out.url(t), func() {
		cancel()
		require.NoError(t, <-ended)
		http.DefaultClient.CloseIdleConnections()
	}
}

// call sends a request, again as long as the answer is to come back, as it may be while the server reads its objects. The
// method APPLY is a server-side apply, and STRATEGIC a strategic merge patch.
func call(t *testing.T, method, url, token, body string) (code int, answer string) {
	t.Helper()
	for code == 0 || code == http.StatusTooManyRequests {
		code, answer = callOnce(t, method, url, token, body)
	}
	return code, answer
}

// callOnce is call of a request that is sent once.
func callOnce(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	verb, media := method, map[string]string{"APPLY": "application/apply-patch+yaml", "STRATEGIC": "application/strategic-merge-patch+json"}[method]
	if media != "" {
		verb = http.MethodPatch
	}
	req, err := http.NewRequestWithContext(t.Context(), verb, url, strings.NewReader(body))
	require.NoError(t, err)
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// revisionOf returns the revision in an answer that has one.
func revisionOf(answer string) string {
	return strings.Split(strings.SplitAfter(answer, `"resourceVersion":"`)[1], `"`)[0]
}

const inDefault = "/apis/example.com/v1/namespaces/default/widgets"

func TestServe_KeepsObjectsInAFileOverARestart(t *testing.T) {
	dir := t.TempDir()
	opts := server.Options{Data: "bolt:" + filepath.Join(dir, "data"), Kubeconfig: filepath.Join(dir, "config")}
	url, stop := serving(t, opts)
	code, created := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code, created)
	config, err := os.ReadFile(opts.Kubeconfig)
	require.NoError(t, err)
	require.Contains(t, string(config), `"server": "`+url+`"`)
	require.NotContains(t, string(config), "token")
	require.NotContains(t, string(config), "certificate")
	stop()
	url, stop = serving(t, opts)
	defer stop()
	code, found := call(t, "GET", url+inDefault+"/a", "", "")
	require.Equal(t, 200, code)
	require.Equal(t, created, found, "the same object at the same revision")
}

func TestServe_TokensAreAskedFor(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("# users\nsecret,alice,1,\"admins,users\"\n"), 0o600))
	opts := server.Options{Data: "memory", TokenFile: tokens, Kubeconfig: filepath.Join(dir, "config")}
	url, stop := serving(t, opts)
	defer stop()
	code, _ := call(t, "GET", url+inDefault, "", "")
	require.Equal(t, 401, code)
	code, _ = call(t, "GET", url+inDefault, "secret", "")
	require.Equal(t, 200, code)
	config, err := os.ReadFile(opts.Kubeconfig)
	require.NoError(t, err)
	require.Contains(t, string(config), `"token": "secret"`)
}

// metricsWith returns the page of metrics once it has these lines. What an answer to a request does not wait for,
// such as that an engine is ready, may come later.
func metricsWith(t *testing.T, url, token string, lines ...string) (page string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, page = call(t, "GET", url+"/metrics", token, "")
		return !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(page, "\n"+line) })
	}, time.Minute, time.Millisecond)
	return page
}

// bothReady are the lines of the engines of widgets, one for each version, when they are ready.
var bothReady = []string{`watchmill_ready{group="example.com",resource="widgets"} 1`, `watchmill_ready{group="example.com/v1beta1",resource="widgets"} 1`}

func TestServe_ShowsMetricsIfAsked(t *testing.T) {
	url, stop := serving(t, server.Options{Data: "memory", Metrics: true})
	defer stop()
	code, _ := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code)
	code, _ = call(t, "GET", url+inDefault, "", "")
	require.Equal(t, 200, code)
	metricsWith(t, url, "", bothReady...)
	code, page := call(t, "GET", url+"/metrics", "", "")
	require.Equal(t, 200, code)
	require.Regexp(t, `\nwatchmill_encode_cache_misses_total [1-9]`, page)
	for _, line := range []string{
		`apiserver_request_total{code="201",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		"go_goroutines", "process_resident_memory_bytes",
		"apiserver_watch_cache_initialization_duration_seconds_count{",
	} {
		require.Contains(t, page, "\n"+line)
	}
	plain, stopPlain := serving(t, server.Options{Data: "memory"})
	defer stopPlain()
	code, _ = call(t, "GET", plain+"/metrics", "", "")
	require.Equal(t, 404, code)
}

func TestServe_AnswersByItsNamesAndCompressedIfAsked(t *testing.T) {
	url, stop := serving(t, server.Options{Data: "memory", Hosts: []string{"mill.example.com"}, CompressAbove: 1})
	defer stop()
	code, list := call(t, "GET", url+inDefault, "", "") // so that it has read its objects
	require.Equal(t, 200, code, list)
	for host, want := range map[string]string{"mill.example.com": "200 gzip", "evil.example.com": "400 "} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+inDefault, nil)
		require.NoError(t, err)
		req.Host = host
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Content-Encoding")), host)
	}
}

func TestServe_WatchesOverWebSocket(t *testing.T) {
	url, stop := serving(t, server.Options{Data: "memory", Origins: []string{"https://console.example.com"}})
	for origin, want := range map[string]int{"https://console.example.com": 101, "https://evil.example.com": 403} {
		conn, resp, err := websocket.Dial(t.Context(), url+inDefault+"?watch=1", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
		require.Equal(t, want, resp.StatusCode, "%s: %v", origin, err)
		if conn != nil {
			defer conn.CloseNow()
		}
	}
	stop()
}

func TestServe_SaysWhatItServesAndWhatItDoesNot(t *testing.T) {
	out := newServedOutput()
	_, stop := servingTo(t, out, server.Options{Data: "memory"})
	stop()
	require.Contains(t, out.text.String(), "  widgets.example.com/v1\n    note: 1 x-kubernetes-validations rules of version v1 are not evaluated\n  widgets.example.com/v1beta1\n")
	require.Equal(t, 1, strings.Count(out.text.String(), "note: "), "it is of all versions")
	require.NotContains(t, out.text.String(), "replica")
}

// A group without a name leaves no dot behind.
func TestServe_NamesKindsOfTheCoreGroup(t *testing.T) {
	maps, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: registry.Kind{Version: "v1", Kind: "ConfigMap"}})
	require.NoError(t, err)
	defer maps.Close()
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{maps}})
	require.NoError(t, err)
	origin := httptest.NewServer(handler)
	defer origin.Close()
	defer origin.CloseClientConnections()
	out := newServedOutput()
	_, stop := servingTo(t, out, server.Options{Data: "memory", Upstream: origin.URL})
	stop()
	require.Contains(t, out.text.String(), "\na replica of "+origin.URL+"\n  configmaps/v1\n")
}

// A server that says nothing after an interrupt would seem to hang, for all the time that it leaves
// to load balancers.
func TestServe_SaysWhatItWaitsForWhenItDrains(t *testing.T) {
	log := newServedOutput()
	_, stop := serving(t, server.Options{Data: "memory", Log: log})
	require.Empty(t, log.text.String())
	stop()
	require.Contains(t, log.text.String(), "draining: /readyz fails for 0s")
	require.Contains(t, log.text.String(), "a second interrupt or SIGTERM ends the server at once")
	require.Equal(t, 1, strings.Count(log.text.String(), "\n"), "nothing else is to be said")
}

// A list without items cannot be merged by item, which the command says.
func TestServe_AppliesWhatItCannotMergeAsOneField(t *testing.T) {
	text, err := os.ReadFile(manifests)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "loose.yaml")
	loose := strings.Replace(string(text), "size:\n", "loose: {type: array}\n              size:\n", 1)
	require.NotEqual(t, string(text), loose)
	require.NoError(t, os.WriteFile(file, []byte(loose), 0o600))
	out := newServedOutput()
	url, stop := servingTo(t, out, server.Options{CRDs: []string{file}, Data: "memory"})
	defer stop()
	require.Eventually(t, func() bool {
		return strings.Contains(out.String(), "    note: server-side apply of version v1 treats every list as a single field: ")
	}, time.Minute, time.Millisecond)
	const a = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":4,"loose":["x"]}}`
	code, applied := call(t, "APPLY", url+inDefault+"/a?fieldManager=one", "", a)
	require.Equal(t, 201, code, applied)
	code, conflict := call(t, "APPLY", url+inDefault+"/a?fieldManager=two", "", strings.Replace(a, `"x"`, `"y"`, 1))
	require.Equal(t, 409, code, conflict)
	require.Contains(t, conflict, `".spec.loose"`)
}

// selfSigned returns a certificate for names and its key in PEM.
func selfSigned(t *testing.T, names ...string) (certificate, key string) {
	t.Helper()
	return selfSignedFor(t, time.Time{}, time.Time{}, names...)
}

// selfSignedFor is selfSigned of a certificate that is valid for a time.
func selfSignedFor(t *testing.T, from, until time.Time, names ...string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, DNSNames: names, NotBefore: from, NotAfter: until}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	text := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return text("CERTIFICATE", signed), text("PRIVATE KEY", encoded)
}

func TestServe_NamesTheFlagOfAnAddressInUse(t *testing.T) {
	url, stop := serving(t, server.Options{Data: "memory"})
	defer stop()
	_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--listen", strings.TrimPrefix(url, "http://"))
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, "--listen: listen tcp")
}

func TestServe_NamesTheFlagOfAFileThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none", "data")
	_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--data", "bolt:"+file)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "--data: cannot use the file: cannot make "+file)
}

// A script that tries a flag must not find storage afterwards that it did not have.
func TestServe_WrongUsageMakesNoFileAndDoesNotServe(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"--tls-cert", manifests},
		{"--token-file", filepath.Join(dir, "none")},
		{"--origin", "*"},
		{"--kubeconfig", manifests},
		{"--kubeconfig", filepath.Join(dir, "none", "config")},
		{"--kubeconfig", filepath.Join(dir, strings.Repeat("x", 300))},
	} {
		out, errs, status := command(t.Context(), append([]string{"serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--data", "bolt:" + filepath.Join(dir, "data")}, args...)...)
		require.Equal(t, exitUsage, status, "%v: %s", args, errs)
		require.Empty(t, out)
		require.Empty(t, filetest.Names(t, dir), "%v", args)
	}
}

// gadgets are of the kind of the widgets in manifests.
const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func TestServe_WrongUsageExitsWithTwo(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	mine, empty, half := write("mine", "apiVersion: v1\n"), write("empty", ""), write("half", "secret\n")
	authority, private := selfSigned(t)
	cert, key := write("cert", authority), write("key", private)
	damaged := write("damaged", authority+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	large := write("large", "")
	require.NoError(t, os.Truncate(large, 1<<30))
	torn := write("torn", authority+authority[:len(authority)/2])
	none := filepath.Join(dir, "none")
	for mention, args := range map[string][]string{
		"--crd":                            {},
		"no such file":                     {"--crd", filepath.Join(dir, "none")},
		"no document":                      {"--crd", empty},
		`--data is "tape"; give memory`:    {"--crd", manifests, "--data", "tape"},
		"bolt:WHERE":                       {"--crd", manifests, "--data", "bolt:"},
		"use watchmill-etcd serve":         {"--crd", manifests, "--data", "etcd:127.0.0.1:2379/shop"},
		"together with --upstream":         {"--upstream", "http://127.0.0.1:1", "--crd", manifests, "--data", "bolt:x"},
		"a replica's objects are at the":   {"--upstream", "http://127.0.0.1:1", "--data", "bolt:x"},
		`--upstream is "here"; give one`:   {"--upstream", "here"},
		`--upstream is "http://me:xxxxx@`:  {"--upstream", "http://me:secret@10.0.0.1", "--crd", manifests},
		`"https://me:xxxxx@10.0.0.1"`:      {"--upstream", "https://me:se#cr%et@10.0.0.1", "--crd", manifests},
		"has no token":                     {"--upstream", "http://127.0.0.1:1", "--upstream-token-file", empty},
		"--origin has":                     {"--crd", manifests, "--origin", "*"},
		"reach; give --tls-cert and":       {"--crd", manifests, "--listen", "0.0.0.0:0"},
		"--listen is \"here\"; give host":  {"--crd", manifests, "--listen", "here"},
		"--listen is :99999: invalid":      {"--crd", manifests, "--listen", ":99999"},
		"--listen is localhost:80a: inv":   {"--crd", manifests, "--listen", "localhost:80a"},
		"invalid port; give a number":      {"--crd", "none", "--listen", ":99999"},
		"--listen is 0.0.0.0:80, which":    {"--crd", "none", "--listen", "0.0.0.0:80"},
		"--audit-log cannot be written":    {"--crd", manifests, "--data", "bolt:" + empty, "--audit-log", filepath.Join(none, "audit")},
		"--audit-log is the file of --crd": {"--crd", manifests, "--data", "bolt:" + empty, "--audit-log", manifests},
		"--crd cannot be read: read":       {"--crd", dir},
		"--tls-cert":                       {"--crd", manifests, "--tls-cert", empty, "--tls-key", empty},
		"tls-key cannot be used: " + large: {"--crd", manifests, "--tls-cert", large, "--tls-key", key},
		"--token-file cannot be read: " + large + " is larger than 8388608 bytes": {"--crd", manifests, "--token-file", large},
		"tls-key cannot be used: open " + none:                                    {"--crd", manifests, "--tls-cert", cert, "--tls-key", none},
		"--client-ca cannot be read":                                              {"--crd", manifests, "--tls-cert", cert, "--tls-key", key, "--client-ca", none},
		"--upstream-token-file cannot be read":                                    {"--upstream", "http://127.0.0.1:1", "--upstream-token-file", none},
		"--token-file does not parse: write lines":                                {"--crd", manifests, "--token-file", write("quotes", "secret,\"ma\"ker\n")},
		"needs TLS":                                      {"--crd", manifests, "--client-ca", empty},
		"0 blocks of PEM":                                {"--crd", manifests, "--tls-cert", cert, "--tls-key", key, "--client-ca", empty},
		"block 2, CERTIFICATE":                           {"--crd", manifests, "--tls-cert", cert, "--tls-key", key, "--client-ca", damaged},
		"2 blocks of PEM of which 1":                     {"--crd", manifests, "--tls-cert", cert, "--tls-key", key, "--client-ca", torn},
		"without a user":                                 {"--crd", manifests, "--tls-cert", cert, "--tls-key", key, "--client-ca", cert, "--kubeconfig", filepath.Join(dir, "new")},
		"every request would be refused":                 {"--crd", manifests, "--token-file", empty},
		"no token and user":                              {"--crd", manifests, "--token-file", half},
		"no token and user in record 2":                  {"--crd", manifests, "--token-file", write("anonymous", "secret,maker\n,guest\n")},
		"no token and user in record 3":                  {"--crd", manifests, "--token-file", write("nameless", "first,maker\nsecond,taker\nthird,,\n")},
		"the token of record 2 twice":                    {"--crd", manifests, "--token-file", write("twice", "secret,maker\nsecret,taker\n")},
		"ends with a blank in record 1":                  {"--crd", manifests, "--token-file", write("blank", "secret ,maker\n")},
		"--host has \"a:1\"":                             {"--crd", manifests, "--host", "a:1"},
		"does not have; use watchmill-etcd serve, which": {"--core-kinds"},
		"--event-ttl is for events of --core-kinds":      {"--crd", manifests, "--event-ttl", "2h"},
		"--event-ttl is 0s; give 1s or more":             {"--core-kinds", "--event-ttl", "0"},
		"--event-ttl is -1h0m0s; give 1s or more":        {"--core-kinds", "--event-ttl=-1h"},
		"--event-ttl is 1000000h0m0s; give 1s or":        {"--core-kinds", "--event-ttl=1000000h"},
		"definitions are created at the":                 {"--upstream", "http://127.0.0.1:1", "--allow-crds"},
		"objects are deleted at the server":              {"--upstream", "http://127.0.0.1:1", "--garbage-collector"},
		"--upstream, which is missing":                   {"--crd", manifests, "--upstream-token-file", half},
		"--upstream-ca is for the server of --upstream":  {"--crd", manifests, "--upstream-ca", cert},
		"--upstream-cert is for https, and --upstream":   {"--upstream", "http://127.0.0.1:1", "--upstream-cert", cert},
		"--upstream-key is missing":                      {"--upstream", "https://127.0.0.1:1", "--upstream-cert", cert},
		"--upstream-ca cannot be read":                   {"--upstream", "https://127.0.0.1:1", "--upstream-ca", none},
		"--upstream-ca has 0 blocks of PEM":              {"--upstream", "https://127.0.0.1:1", "--upstream-ca", empty},
		"upstream-key cannot be used: open " + none:      {"--upstream", "https://127.0.0.1:1", "--upstream-cert", cert, "--upstream-key", none},
		"--tls-key is missing":                           {"--crd", manifests, "--tls-cert", cert},
		"give --tls-cert and --tls-key together":         {"--upstream", "http://127.0.0.1:1", "--tls-cert", cert},
		"--tls-cert is missing":                          {"--crd", manifests, "--tls-key", key},
		"--crd defines widgets.example":                  {"--crd", manifests, "--crd", manifests},
		"--crd has widgets and gadgets":                  {"--crd", manifests, "--crd", write("gadgets", gadgets)},
		"--kubeconfig cannot be written":                 {"--crd", manifests, "--listen", "127.0.0.1:0", "--kubeconfig", filepath.Join(dir, "none", "config")},
		"--max-reads is 0":                               {"--crd", manifests, "--max-reads", "0"},
		"--max-writes is -1":                             {"--crd", manifests, "--max-writes=-1"},
		"--max-watches is 0":                             {"--crd", manifests, "--max-watches=0"},
		"--max-watches-per-user is 0":                    {"--crd", manifests, "--max-watches-per-user=0"},
		"per-user is 50, more than --max-watches, which": {"--crd", manifests, "--max-watches=5", "--max-watches-per-user=50"},
		"--max-connections-per-address is 0; give 1":     {"--crd", manifests, "--max-connections-per-address=0"},
		"--shutdown-delay is -1s; give 0s":               {"--crd", manifests, "--shutdown-delay=-1s"},
		"--drain-watches is -1s; give 0s":                {"--crd", manifests, "--drain-watches=-1s"},
		"was not written by":                             {"--crd", manifests, "--listen", "127.0.0.1:0", "--kubeconfig", mine},
	} {
		_, errs, status := command(t.Context(), append([]string{"serve"}, args...)...)
		require.Equal(t, exitUsage, status, "%v: %s", args, errs)
		require.Contains(t, errs, mention)
	}
	left, err := os.ReadFile(mine)
	require.NoError(t, err)
	require.Equal(t, "apiVersion: v1\n", string(left))
}

// A variable of the shell that is not set must leave out neither users nor a backup.
func TestServe_RefusesAFlagThatIsEmpty(t *testing.T) {
	for _, flag := range []string{"--token-file", "--client-ca", "--tls-cert", "--tls-key", "--audit-log", "--snapshot", "--kubeconfig", "--upstream", "--upstream-token-file", "--data", "--listen", "--crd", "--origin", "--host"} {
		_, errs, status := command(t.Context(), "serve", "--crd", manifests, flag, "")
		require.Equal(t, exitUsage, status, flag)
		require.Contains(t, errs, flag)
	}
	_, errs, _ := command(t.Context(), "serve", "--crd", manifests, "--token-file=")
	require.Contains(t, errs, "watchmill: --token-file: is empty; give a value, or leave the flag out\n")
	for _, value := range []string{"", ",b.example.com", "a.example.com,,b.example.com"} {
		_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--host=a.example.com", "--host="+value)
		require.Equal(t, exitUsage, status, value)
		require.Contains(t, errs, "watchmill: --host: is empty; give a value, or leave the flag out\n")
	}
}

// A command that could not serve leaves no new file of objects behind, and each other file as it
// was.
func TestServe_LeavesNoFileUnlessItHasServed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "data")
	serve := func(args ...string) (status int) {
		_, _, status = command(t.Context(), append([]string{"serve", "--crd", manifests, "--data", "bolt:" + file}, args...)...)
		return status
	}
	require.Equal(t, exitUsage, serve("--host", "a:1"))
	require.Equal(t, exitUsage, serve("--listen", "here"))
	other, stop := serving(t, server.Options{Data: "memory"})
	require.Equal(t, exitFailed, serve("--listen", strings.TrimPrefix(other, "http://")))
	stop()
	require.Empty(t, filetest.Names(t, dir))
	_, stop = serving(t, server.Options{Data: "bolt:" + file})
	stop()
	require.Equal(t, exitUsage, serve("--host", "a:1"))
	require.Equal(t, []string{"data"}, filetest.Names(t, dir))
}
