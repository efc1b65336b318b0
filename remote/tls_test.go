package remote_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// guarded is a server of widgets whose certificate is of a private authority. It refuses clients without a certificate,
// and requests that come with the certificate that is refused.
type guarded struct {
	url      string
	clients  *tls.Config            // how clients reach it
	protocol atomic.Pointer[string] // of the last request, nil if there is none
	refused  atomic.Pointer[tls.Certificate]
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	store, err := registry.New(widgets(new(atomic.Int64)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{store}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	g := &guarded{}
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.protocol.Store(&r.Proto)
		if refused := g.refused.Load(); refused != nil && bytes.Equal(r.TLS.PeerCertificates[0].Raw, refused.Certificate[0]) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	h.EnableHTTP2 = true
	h.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	h.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	h.StartTLS()
	t.Cleanup(h.Close)
	authorities := x509.NewCertPool()
	authorities.AddCert(h.Certificate())
	g.url, g.clients = h.URL, &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{newCertificate(t)}}
	return g
}

// newCertificate returns a certificate that is signed by itself.
func newCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}

func TestConfig_TLSIsThatOfAllRequests(t *testing.T) {
	origin := newGuarded(t)
	served, err := remote.Kinds(t.Context(), remote.Config{URL: origin.url, TLS: origin.clients})
	require.NoError(t, err)
	require.Len(t, served, 1)
	b := backendAt(t, origin.url, func(c *remote.Config) { c.TLS = origin.clients })
	list, err := b.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", *origin.protocol.Load())
	origin.protocol.Store(nil)
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: list.Revision, Notify: func() {}})
	require.NoError(t, err)
	w.Close()
	require.Equal(t, "HTTP/2.0", *origin.protocol.Load())
}

// Without an authority the server is not trusted, and without a certificate it refuses.
func TestConfig_TLSIsNeededForAPrivateAuthority(t *testing.T) {
	origin := newGuarded(t)
	get := func(with *tls.Config) error {
		_, err := backendAt(t, origin.url, func(c *remote.Config) { c.TLS = with }).Get(t.Context(), "default/a")
		require.ErrorIs(t, err, backend.ErrUnavailable)
		return err
	}
	require.ErrorContains(t, get(nil), "tls: failed to verify certificate")
	require.ErrorContains(t, get(&tls.Config{Certificates: origin.clients.Certificates}), "tls: failed to verify certificate")
	require.Error(t, get(&tls.Config{RootCAs: origin.clients.RootCAs}))
	require.Nil(t, origin.protocol.Load(), "no request was served")
}

// TLS that would not be used is refused, since a program relies on it.
func TestConfig_TLSThatWouldNotBeUsedIsRefused(t *testing.T) {
	refused := func(says string, c remote.Config) {
		_, err := remote.Kinds(t.Context(), c)
		require.ErrorIs(t, err, usercode.ErrConfig)
		require.ErrorContains(t, err, ": TLS is set, ")
		require.ErrorContains(t, err, says)
	}
	refused("give it to the Client's transport", remote.Config{URL: "https://127.0.0.1", TLS: &tls.Config{}, Client: &http.Client{}})
	refused("give a URL of https", remote.Config{URL: "http://127.0.0.1", TLS: &tls.Config{}})
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = through{before}
	refused("a remote_test.through; give a Client", remote.Config{URL: "https://127.0.0.1", TLS: &tls.Config{}})
}

// A connection keeps its certificate, which ends to be good while a watch holds the connection open.
func TestConfig_TLSOfACertificateThatIsRenewed(t *testing.T) {
	origin := newGuarded(t)
	first, second := newCertificate(t), newCertificate(t)
	var shown atomic.Pointer[tls.Certificate]
	shown.Store(&first)
	b := backendAt(t, origin.url, func(c *remote.Config) {
		c.TLS = &tls.Config{RootCAs: origin.clients.RootCAs, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shown.Load(), nil }}
	})
	list, err := b.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: list.Revision, Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()

	shown.Store(&second)
	_, err = b.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err, "the first is good still")
	origin.refused.Store(&first)
	_, err = b.List(t.Context(), backend.ListOptions{})
	require.Error(t, err)
	for range 3 {
		_, err = b.List(t.Context(), backend.ListOptions{})
		require.NoError(t, err, "over a new connection")
	}
	require.Equal(t, "HTTP/2.0", *origin.protocol.Load())
}
