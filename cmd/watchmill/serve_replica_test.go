package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	code, scale := call(t, "GET", replica+inDefault+"/a/scale", "", "")
	require.Equal(t, 200, code, "the definition tells where a kind has its replicas")
	require.Contains(t, scale, `"replicas":4`)
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
					_, list := call(t, "GET", replica+inDefault+cached, "", "")
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

// An origin whose certificate a private authority has signed knows its replica by a certificate, too. The connection
// of one that is trusted no longer is left, although a watch goes on over it.
func TestServe_AReplicaShowsACertificateThatIsRenewed(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	servers, first, second := newAuthority(t), newAuthority(t), newAuthority(t)
	certificate, key := servers.server("localhost")
	rewrite(t, file("cert"), certificate)
	rewrite(t, file("key"), key)
	rewrite(t, file("servers"), servers.pem())
	show := func(by *authority) {
		certificate, key := inPEM(t, by.client("replica"))
		rewrite(t, file("shown"), certificate)
		rewrite(t, file("shown-key"), key)
	}
	show(first)
	rewrite(t, file("clients"), first.pem())
	at, stopOrigin := serving(t, server.Options{Data: "memory", CertFile: file("cert"), KeyFile: file("key"), ClientCAFile: file("clients")})
	defer stopOrigin()
	replica, stopReplica := serving(t, server.Options{
		Data: "memory", Upstream: strings.Replace(at, "127.0.0.1", "localhost", 1),
		UpstreamCAFile: file("servers"), UpstreamCertFile: file("shown"), UpstreamKeyFile: file("shown-key"),
	})
	defer stopReplica()
	create := func(name string) int {
		code, _ := call(t, "POST", replica+inDefault, "", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"size":3}}`, name))
		return code
	}
	require.Equal(t, 201, create("a"))
	rewrite(t, file("clients"), second.pem())
	require.Contains(t, []int{500, 503}, create("b"), "the certificate is trusted no longer: a new connection says so before or after the request is sent")
	show(second)
	require.Eventually(t, func() bool { return create("c") == 201 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, 201, create("d"))
}
