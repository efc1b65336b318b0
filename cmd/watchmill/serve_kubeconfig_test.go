package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// The name in a kubeconfig is one that the certificate is for, and that leads to the server. Without TLS it says
// that there is no certificate to verify, since Kubernetes' client for JavaScript refuses http otherwise.
func TestServe_WritesAKubeconfigThatLeadsToTheServer(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("secret,alice\n"), 0o600))
	for _, c := range []struct {
		listen      string
		hosts, of   []string
		unencrypted bool
		server      string
	}{
		{"127.0.0.1:0", []string{"mill.example.com"}, nil, true, "http://127.0.0.1:"},
		{"127.0.0.1:0", nil, []string{"localhost"}, false, "https://localhost:"},
		{"127.0.0.1:0", []string{"mill.example.com"}, []string{"mill.example.com"}, false, "https://mill.example.com:"},
		{"127.0.0.1:0", nil, []string{"elsewhere"}, false, "https://127.0.0.1:"},
		{"0.0.0.0:0", nil, []string{"localhost"}, false, "https://localhost:"},
		{"0.0.0.0:0", []string{"mill.example.com"}, []string{"*.example.com", "localhost"}, false, "https://mill.example.com:"},
		{"0.0.0.0:0", nil, []string{"elsewhere"}, false, "https://localhost:"},
	} {
		certificate, key := selfSigned(t, c.of...)
		opts := server.Options{Data: "memory", Listen: c.listen, Hosts: c.hosts, TokenFile: tokens, Kubeconfig: filepath.Join(dir, "config")}
		if !c.unencrypted {
			opts.CertFile, opts.KeyFile = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
			require.NoError(t, os.WriteFile(opts.CertFile, []byte(certificate), 0o600))
			require.NoError(t, os.WriteFile(opts.KeyFile, []byte(key), 0o600))
		}
		_, stop := serving(t, opts)
		config, err := os.ReadFile(opts.Kubeconfig)
		require.NoError(t, err)
		require.Contains(t, string(config), `"server": "`+c.server)
		require.Equal(t, c.unencrypted, strings.Contains(string(config), `"insecure-skip-tls-verify": true`), "%s", config)
		stop()
	}
}

// kubectl does not send the token of a kubeconfig to a server without TLS, and says only that it is not
// logged in.
func TestServe_WarnsOfAKubeconfigWhoseTokenIsNotSent(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("secret,alice\n"), 0o600))
	certificate, key := selfSigned(t, "localhost")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "both"), []byte(key+certificate), 0o600))
	for _, c := range []struct {
		tokens, kubeconfig, both string
		warns                    bool
	}{
		{tokens, "config", "", true},
		{tokens, "config", "both", false},
		{tokens, "", "", false},
		{"", "config", "", false},
	} {
		opts := server.Options{Data: "memory", TokenFile: c.tokens, Log: newServedOutput()}
		if c.kubeconfig != "" {
			opts.Kubeconfig = filepath.Join(dir, c.kubeconfig)
		}
		if c.both != "" {
			opts.CertFile, opts.KeyFile = filepath.Join(dir, c.both), filepath.Join(dir, c.both)
		}
		_, stop := serving(t, opts)
		stop()
		require.Equal(t, c.warns, strings.Contains(opts.Log.(*servedOutput).String(), "do not send the token"), c)
	}
}

// One file may have the certificate and its key. A kubeconfig, which others get, has no key.
func TestServe_WritesAKubeconfigWithoutTheKeyOfItsCertificate(t *testing.T) {
	dir := t.TempDir()
	certificate, key := selfSigned(t, "localhost")
	opts := server.Options{Data: "memory", Kubeconfig: filepath.Join(dir, "config"), CertFile: filepath.Join(dir, "both"), KeyFile: filepath.Join(dir, "both")}
	require.NoError(t, os.WriteFile(opts.CertFile, []byte(key+certificate), 0o600))
	_, stop := serving(t, opts)
	defer stop()
	config, err := os.ReadFile(opts.Kubeconfig)
	require.NoError(t, err)
	require.Contains(t, string(config), `"certificate-authority-data": "`+base64.StdEncoding.EncodeToString([]byte(certificate))+`"`)
}

// Clients in other languages, whose TLS is OpenSSL's, trust the certificate only by the authority's, and some read
// no other than the first.
func TestServe_WritesAKubeconfigWithTheAuthorityOfItsCertificate(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	signs, another := newAuthority(t), newAuthority(t)
	certificate, key := signs.server("localhost")
	tokens, keys := write("tokens", "secret,alice\n"), write("key", key)
	for name, c := range map[string]struct {
		cert, clients string
		knows         bool
	}{
		"alone":                        {certificate, "", false},
		"with its authority":           {certificate + signs.pem(), "", true},
		"its authority signs clients":  {certificate, another.pem() + signs.pem(), true},
		"another authority signs them": {certificate, another.pem(), false},
	} {
		opts := server.Options{Data: "memory", TokenFile: tokens, CertFile: write("cert", c.cert), KeyFile: keys, Kubeconfig: filepath.Join(dir, "config"), Log: newServedOutput()}
		if c.clients != "" {
			opts.ClientCAFile = write("clients", c.clients)
		}
		_, stop := serving(t, opts)
		stop()
		config, err := os.ReadFile(opts.Kubeconfig)
		require.NoError(t, err)
		trusted := certificate
		if c.knows {
			trusted = signs.pem() + certificate
		}
		require.Contains(t, string(config), `"certificate-authority-data": "`+base64.StdEncoding.EncodeToString([]byte(trusted))+`"`, name)
		require.Equal(t, !c.knows, strings.Contains(opts.Log.(*servedOutput).String(), "append the authority's certificate"), name)
	}
}
