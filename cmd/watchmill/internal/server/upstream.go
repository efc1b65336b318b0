package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/redact"
	"github.com/watchmill/watchmill/remote"
)

// mayFollow returns an error if another flag does not go with --upstream, or needs it.
func (o *Options) mayFollow() error {
	switch {
	case o.Upstream == "":
		return o.withoutUpstream()
	case o.AllowCRDs:
		return &engine.ConfigError{Field: "--allow-crds", Problem: "cannot be given together with --upstream: definitions are created at the server that it follows"}
	case o.CoreKinds:
		return &engine.ConfigError{Field: "--core-kinds", Problem: "cannot be given together with --upstream: a replica has the kinds of the server that it follows"}
	case o.GarbageCollector:
		return &engine.ConfigError{Field: "--garbage-collector", Problem: "cannot be given together with --upstream: objects are deleted at the server that it follows"}
	case o.Data != "memory":
		return &engine.ConfigError{Field: "--data", Problem: "cannot be given together with --upstream: a replica's objects are at the server that it follows"}
	}
	if flag := o.upstreamTLS(); flag != "" && strings.HasPrefix(o.Upstream, "http:") {
		return &engine.ConfigError{Field: flag, Problem: "is for https, and --upstream is " + redact.URL(o.Upstream) + "; give a URL of https"}
	}
	return nil
}

// withoutUpstream returns an error if a flag is given that is for --upstream, which is not.
func (o *Options) withoutUpstream() error {
	flag := o.upstreamTLS()
	if o.UpstreamTokenFile != "" {
		flag = "--upstream-token-file"
	}
	if flag == "" {
		return nil
	}
	return &engine.ConfigError{Field: flag, Problem: "is for the server of --upstream, which is missing; give both or neither"}
}

// upstreamTLS returns the first flag that is given and says how to speak TLS with --upstream, or "".
func (o *Options) upstreamTLS() string {
	for _, given := range []struct{ flag, file string }{
		{"--upstream-ca", o.UpstreamCAFile}, {"--upstream-cert", o.UpstreamCertFile}, {"--upstream-key", o.UpstreamKeyFile},
	} {
		if given.file != "" {
			return given.flag
		}
	}
	return ""
}

// origin returns the configuration of the client of the server that a replica follows. The log gets a line when a
// renewed certificate is read.
func (o *Options) origin(log *slog.Logger) (cfg remote.Config, err error) {
	// Clients that apply read from the replica, and their writes go to the origin, so both
	// need the managed fields.
	cfg = remote.Config{URL: o.Upstream, KeepManagedFields: true}
	if cfg.TLS, err = o.originTLS(log); err != nil {
		return cfg, err
	}
	if o.UpstreamTokenFile == "" {
		return cfg, nil
	}
	cfg.TokenSource = func(context.Context) (string, error) { return readToken(o.UpstreamTokenFile) }
	if _, err := readToken(o.UpstreamTokenFile); err != nil {
		return cfg, err
	}
	return cfg, nil
}

// originTLS returns how to speak TLS with that server; nil if no flag says. The certificate is read again for a new
// connection when it or its key has changed.
func (o *Options) originTLS(log *slog.Logger) (*tls.Config, error) {
	if o.upstreamTLS() == "" {
		return nil, nil
	}
	c := &tls.Config{}
	if o.UpstreamCAFile != "" {
		authorities, err := readAuthorities("--upstream-ca", o.UpstreamCAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		for _, one := range authorities {
			c.RootCAs.AddCert(one)
		}
	}
	if o.UpstreamCertFile == "" && o.UpstreamKeyFile == "" {
		return c, nil
	}
	pair, err := loadPair(log, "--upstream-cert", o.UpstreamCertFile, "--upstream-key", o.UpstreamKeyFile)
	if err != nil {
		return nil, err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.get(), nil }
	return c, nil
}

// readToken returns the token in the file of --upstream-token-file.
func readToken(name string) (string, error) {
	wrong := func(problem string) error {
		return &engine.ConfigError{Field: "--upstream-token-file", Problem: problem}
	}
	text, err := readFile(name)
	if err != nil {
		return "", wrong("cannot be read: " + err.Error())
	}
	token := string(bytes.TrimSpace(text))
	if token == "" {
		return "", wrong(fmt.Sprintf("is %s, which has no token; write one to it", name))
	}
	return token, nil
}
