package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// String returns what was written so far.
func (o *servedOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// rewrite replaces a file, as those do that renew certificates.
func rewrite(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(name+".new", name))
}

// A token that was withdrawn is refused from then on, and a new one is known. What cannot be read
// changes nothing: a mistake in the file locks no user out.
func TestServe_ReadsItsTokensAgain(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	rewrite(t, tokens, "first,alice,1\nboth,bob,2\n")
	log := newServedOutput()
	url, stop := serving(t, server.Options{Data: "memory", TokenFile: tokens, Log: log})
	defer stop()
	status := func(token string) int {
		code, _ := call(t, "GET", url+inDefault, token, "")
		return code
	}
	require.Equal(t, []int{200, 200, 401}, []int{status("first"), status("both"), status("second")})
	rewrite(t, tokens, "both,bob,2\nsecond,alice,1\n")
	require.Equal(t, []int{401, 200, 200}, []int{status("first"), status("both"), status("second")})
	require.Equal(t, 1, strings.Count(log.String(), "were read again"))
	for i, harm := range []func(){
		func() { rewrite(t, tokens, "half\n") },
		func() { require.NoError(t, os.Remove(tokens)) },
		func() { require.NoError(t, os.Mkdir(tokens, 0o700)) },
	} {
		harm()
		for range 3 {
			require.Equal(t, []int{401, 200}, []int{status("first"), status("second")})
		}
		require.Equal(t, min(i+1, 2), strings.Count(log.String(), "cannot be used"), "once for each change, and a directory is none")
	}
	require.Contains(t, log.String(), "--token-file has no token and user in record 1")
	require.NoError(t, os.Remove(tokens))
	rewrite(t, tokens, "third,carol,3\n")
	require.Equal(t, []int{401, 200}, []int{status("second"), status("third")})
}

// authority is an authority that signs certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{t: t, key: key}
	a.certificate = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: rand.Text()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, key.Public(), key)
	require.NoError(t, err)
	a.certificate, err = x509.ParseCertificate(signed)
	require.NoError(t, err)
	return a
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// sign returns a certificate, with its key.
func (a *authority) sign(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.NotAfter = time.Now().Add(time.Hour)
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(a.t, err)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}

// client returns a certificate for a user.
func (a *authority) client(user string) tls.Certificate {
	a.t.Helper()
	return a.sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: user}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// server returns a certificate for a server of that name, and its key.
func (a *authority) server(name string) (certificate, key string) {
	a.t.Helper()
	return inPEM(a.t, a.sign(&x509.Certificate{SerialNumber: big.NewInt(3), DNSNames: []string{name}}))
}

// inPEM returns a certificate and its key as they are in files.
func inPEM(t *testing.T, pair tls.Certificate) (certificate, key string) {
	t.Helper()
	encoded, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// A certificate that is renewed is served at once, when its key has come, too.
func TestServe_ReadsItsCertificateAgain(t *testing.T) {
	dir := t.TempDir()
	opts := server.Options{Data: "memory", CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key")}
	certificate, key := selfSigned(t, "first.example.com")
	rewrite(t, opts.CertFile, certificate)
	rewrite(t, opts.KeyFile, key)
	log := newServedOutput()
	opts.Log = log
	url, stop := serving(t, opts)
	defer stop()
	served := func() []string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].DNSNames
	}
	require.Contains(t, log.String(), "a certificate is not valid now", "it has no end")
	require.Equal(t, []string{"first.example.com"}, served())
	certificate, key = selfSigned(t, "second.example.com")
	rewrite(t, opts.CertFile, certificate)
	for range 2 {
		require.Equal(t, []string{"first.example.com"}, served(), "there is no key for the second one")
	}
	require.Equal(t, 1, strings.Count(log.String(), "private key does not match public key"))
	rewrite(t, opts.KeyFile, key)
	require.Equal(t, []string{"second.example.com"}, served())
}

// A client says only that it does not trust the server.
func TestServe_WarnsOfACertificateThatIsNotValidNow(t *testing.T) {
	dir := t.TempDir()
	opts := server.Options{Data: "memory", CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key")}
	for _, c := range []struct {
		from, until time.Duration
		warns       bool
	}{{-time.Hour, time.Hour, false}, {time.Hour, 2 * time.Hour, true}, {-2 * time.Hour, -time.Hour, true}} {
		certificate, key := selfSignedFor(t, time.Now().Add(c.from), time.Now().Add(c.until))
		rewrite(t, opts.CertFile, certificate)
		rewrite(t, opts.KeyFile, key)
		log := newServedOutput()
		opts.Log = log
		_, stop := serving(t, opts)
		stop()
		require.Equal(t, c.warns, strings.Contains(log.String(), "a certificate is not valid now"), log.String())
	}
}

func TestServe_SpeaksNoTLSBefore12(t *testing.T) {
	dir := t.TempDir()
	opts := server.Options{Data: "memory", CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key"), ClientCAFile: filepath.Join(dir, "ca")}
	certificate, key := selfSigned(t, "localhost")
	rewrite(t, opts.ClientCAFile, newAuthority(t).pem())
	rewrite(t, opts.CertFile, certificate)
	rewrite(t, opts.KeyFile, key)
	url, stop := serving(t, opts)
	defer stop()
	for version, spoken := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version})
		require.Equal(t, spoken, err == nil, "%s: %v", tls.VersionName(version), err)
		if err == nil {
			require.NoError(t, conn.Close())
		}
	}
}

// The kubeconfig has a token, though others show certificates.
func TestServe_KnowsUsersByCertificateOrByToken(t *testing.T) {
	dir := t.TempDir()
	path := func(name, text string) string {
		rewrite(t, filepath.Join(dir, name), text)
		return filepath.Join(dir, name)
	}
	certificate, key := selfSigned(t, "localhost")
	trusted := newAuthority(t)
	opts := server.Options{
		Data: "memory", CertFile: path("cert", certificate), KeyFile: path("key", key), ClientCAFile: path("ca", trusted.pem()),
		TokenFile: path("tokens", "secret,alice\n"), Kubeconfig: filepath.Join(dir, "config"),
	}
	url, stop := serving(t, opts)
	defer stop()
	config, err := os.ReadFile(opts.Kubeconfig)
	require.NoError(t, err)
	require.Contains(t, string(config), `"token": "secret"`)
	for _, c := range []struct {
		token string
		shown []tls.Certificate
		code  int
	}{
		{"", nil, 401}, {"wrong", nil, 401}, {"secret", nil, 200}, {"", []tls.Certificate{trusted.client("bob")}, 200},
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: c.shown}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/apis", nil)
		require.NoError(t, err)
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		client.CloseIdleConnections()
		require.Equal(t, c.code, resp.StatusCode, "%q, %d certificates", c.token, len(c.shown))
	}
}

// Clients of an authority that is trusted no longer are refused, those of a new one are let in,
// and both speak HTTP/2.
func TestServe_ReadsTheAuthoritiesOfClientsAgain(t *testing.T) {
	dir := t.TempDir()
	opts := server.Options{Data: "memory", CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key"), ClientCAFile: filepath.Join(dir, "ca")}
	certificate, key := selfSigned(t, "localhost")
	first, second := newAuthority(t), newAuthority(t)
	rewrite(t, opts.CertFile, certificate)
	rewrite(t, opts.KeyFile, key)
	rewrite(t, opts.ClientCAFile, first.pem())
	url, stop := serving(t, opts)
	defer stop()
	sessions := tls.NewLRUClientSessionCache(0)
	get := func(as tls.Certificate) (protocol string, err error) {
		client := &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{
				InsecureSkipVerify: true, ClientSessionCache: sessions,
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &as, nil }, // whatever the server asks for
			},
		}}
		defer client.CloseIdleConnections()
		resp, err := client.Get(url + "/apis")
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
		return resp.Proto, nil
	}
	alice, bob := first.client("alice"), second.client("bob")
	lasting := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{alice}}}}
	defer lasting.CloseIdleConnections()
	status := func() int {
		resp, err := lasting.Get(url + "/apis")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, 200, status())
	protocol, err := get(alice)
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", protocol)
	_, err = get(bob)
	require.Error(t, err)
	rewrite(t, opts.ClientCAFile, second.pem())
	_, err = get(alice)
	require.Error(t, err, "even if it has a session of before")
	require.Equal(t, 401, status(), "over a connection of before")
	protocol, err = get(bob)
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", protocol)
}
