package serve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// encrypted serves widgets over TLS of the version oldest or newer, by the server's own listener. It returns
// the address, and the roots that trust its certificate.
func encrypted(t *testing.T, oldest uint16) (url string, roots *x509.CertPool) {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS() // for its certificate
	certified.Close()
	roots = x509.NewCertPool()
	roots.AddCert(certified.Certificate())

	widgets, err := registry.New(widgetConfig())
	require.NoError(t, err)
	server, err := serve.New(serve.Config{
		Resources: []serve.Provider{widgets}, Logger: slog.New(slog.DiscardHandler), Limits: serve.Limits{ShutdownDelay: 1, DrainWatches: 1},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- server.ListenAndServe(ctx, serve.ListenOptions{
			Address: "127.0.0.1:0", TLS: &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: oldest},
			Ready: func(at net.Addr) { ready <- at },
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, widgets.Close())
	})
	return "https://" + (<-ready).String() + allWidgets, roots
}

// watches opens watches one after the other, and returns the protocol and how many
// connections they have together.
func watches(t *testing.T, url string, by *http.Transport) (protocol string, connections int) {
	t.Helper()
	local := map[string]bool{}
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			local[i.Conn.LocalAddr().String()] = true
		}})
		req, err := http.NewRequestWithContext(traced, "GET", url+"?watch=1&allowWatchBookmarks=1", nil)
		require.NoError(t, err)
		resp, err := by.RoundTrip(req)
		require.NoError(t, err)
		defer func() { cancel(); resp.Body.Close() }()
		require.Equal(t, 200, resp.StatusCode)
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "BOOKMARK")
		protocol = resp.Proto
	}
	return protocol, len(local)
}

// Over TLS all watches of a client share one connection of HTTP/2; a client of HTTP/1.1
// has a connection for each.
func TestHTTP2_WatchesShareOneConnection(t *testing.T) {
	url, roots := encrypted(t, 0)
	var both, old http.Protocols
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	old.SetHTTP1(true)
	for _, c := range []struct {
		protocols   http.Protocols
		want        string
		connections int
	}{{both, "HTTP/2.0", 1}, {old, "HTTP/1.1", 10}} {
		by := &http.Transport{Protocols: &c.protocols, TLSClientConfig: &tls.Config{RootCAs: roots}}
		protocol, connections := watches(t, url, by)
		by.CloseIdleConnections()
		require.Equal(t, c.want, protocol)
		require.Equal(t, c.connections, connections, protocol)
	}
}

// The server speaks no TLS older than the configuration allows, and none older than 1.2.
func TestTLS_OldVersionsAreRefused(t *testing.T) {
	for oldest, refused := range map[uint16]uint16{tls.VersionTLS10: tls.VersionTLS11, tls.VersionTLS13: tls.VersionTLS12} {
		url, roots := encrypted(t, oldest)
		by := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: refused}}
		defer by.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		require.NoError(t, err)
		_, err = by.RoundTrip(req)
		require.ErrorContains(t, err, "protocol version")
	}
}

// A middleware reads the request after a watch over HTTP/2, as it was.
func TestWatch_MiddlewareReadsTheRequestAtTheEnd(t *testing.T) {
	s := newServer(t)
	seen := make(chan string, 1)
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handler.ServeHTTP(w, r)
		seen <- r.Proto + " " + r.URL.Path + " " + r.Header.Get("X-Asked")
	}))
	h.EnableHTTP2 = true
	s.handler.Harden(h.Config)
	h.StartTLS()
	defer h.Close()
	req, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+inDefault+"?watch=1", nil)
	require.NoError(t, err)
	req.Header.Set("X-Asked", "by a test")
	resp, err := h.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, s.widgets.Close()) // which ends the watch
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "HTTP/2.0 "+inDefault+" by a test", <-seen)
}
