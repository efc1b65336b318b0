package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/websocket"
)

// secured is what a kubeconfig needs to know of users and TLS.
type secured struct {
	// token is of the first user, "" if there are none.
	token string
	// certificate is the server's, nil without TLS, and chain are those by which clients trust it.
	certificate *x509.Certificate
	chain       [][]byte
}

// secure sets users, origins and TLS.
func (o *Options) secure(cfg *serve.Config, listen *serve.ListenOptions) (s secured, err error) {
	if cfg.WebSocket, err = websocket.New(websocket.Options{Origins: o.Origins}); err != nil {
		if wrong := (*engine.ConfigError)(nil); errors.As(err, &wrong) {
			err = &engine.ConfigError{Field: "--origin", Problem: wrong.Problem}
		}
		return s, err
	}
	if s.token, err = o.knowTokens(cfg); err != nil {
		return s, err
	}
	if o.CertFile == "" && o.KeyFile == "" {
		if o.ClientCAFile != "" {
			return s, &engine.ConfigError{Field: "--client-ca", Problem: "needs TLS, in which clients show their certificates; give --tls-cert and --tls-key"}
		}
		if s.token != "" && o.Kubeconfig != "" {
			cfg.Logger.Warn("kubectl and client-go do not send the token in the kubeconfig without TLS, and are refused; give --tls-cert and --tls-key", "kubeconfig", o.Kubeconfig)
		}
		return s, nil
	}
	pair, err := loadPair(cfg.Logger, "--tls-cert", o.CertFile, "--tls-key", o.KeyFile)
	if err != nil {
		return s, err
	}
	s.certificate, s.chain = (*pair.value.Load()).Leaf, (*pair.value.Load()).Certificate
	listen.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(), nil }}
	if err := o.trustClients(cfg, listen.TLS); err != nil || o.Kubeconfig == "" {
		return s, err
	}
	s.chain, err = o.trusted(cfg.Logger, s.chain)
	return s, err
}

// knowTokens makes users of those in --token-file, if it is given, and returns the first token.
func (o *Options) knowTokens(cfg *serve.Config) (first string, err error) {
	if o.TokenFile == "" {
		return "", nil
	}
	type tokens struct {
		first string
		user  func(*http.Request) (serve.User, error)
	}
	known, err := load(cfg.Logger, func() (tokens, error) {
		users, first, err := readTokens(o.TokenFile)
		return tokens{first, serve.BearerTokens(users)}, err
	}, o.TokenFile)
	if err != nil {
		return "", err
	}
	cfg.Authenticate = websocket.Tokens(func(r *http.Request) (serve.User, error) { return known.get().user(r) })
	return known.value.Load().first, nil
}

// loadPair reads a certificate and its key, which flags name, and again when they change. The log has a line about a
// certificate that the other side refuses.
func loadPair(log *slog.Logger, certFlag, certFile, keyFlag, keyFile string) (*reloaded[*tls.Certificate], error) {
	for flag, file := range map[string]string{certFlag: certFile, keyFlag: keyFile} {
		if file == "" {
			return nil, &engine.ConfigError{Field: flag, Problem: fmt.Sprintf("is missing; give %s and %s together", certFlag, keyFlag)}
		}
	}
	return load(log, func() (*tls.Certificate, error) {
		pair, err := readPair(certFile, keyFile)
		if err != nil {
			return nil, &engine.ConfigError{Field: certFlag + " and " + keyFlag, Problem: "cannot be used: " + err.Error()}
		}
		if now := time.Now(); now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter) {
			log.Warn("a certificate is not valid now, so that the other side refuses it", "file", certFile, "from", pair.Leaf.NotBefore, "until", pair.Leaf.NotAfter)
		}
		return &pair, nil
	}, certFile, keyFile)
}

// trustClients makes users of the clients that show a certificate of --client-ca, if it is
// given. The others need a token; a certificate of another authority ends the handshake. A
// connection does not resume the session of an earlier one, whose authority may not be
// trusted any more.
func (o *Options) trustClients(cfg *serve.Config, t *tls.Config) error {
	if o.ClientCAFile == "" {
		return nil
	}
	if cfg.Authenticate == nil && o.Kubeconfig != "" {
		return &engine.ConfigError{Field: "--kubeconfig", Problem: "would be without a user, so that every request with it is refused; give --token-file, too"}
	}
	t.ClientAuth, t.SessionTicketsDisabled = tls.VerifyClientCertIfGiven, true
	plain := t.Clone()
	trusted, err := load(cfg.Logger, func() (*authorities, error) { return newAuthorities(o.ClientCAFile, plain) }, o.ClientCAFile)
	if err != nil {
		return err
	}
	t.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return trusted.get().config, nil }
	byCertificate := func(r *http.Request) (serve.User, error) { return trusted.get().user(r) }
	if cfg.Authenticate == nil {
		cfg.Authenticate = byCertificate
	} else {
		cfg.Authenticate = serve.FirstOf(byCertificate, cfg.Authenticate)
	}
	return nil
}

// authorities are those of --client-ca.
type authorities struct {
	config *tls.Config     // of connections whose clients they sign
	known  map[string]bool // by their certificates
}

func newAuthorities(file string, plain *tls.Config) (*authorities, error) {
	all, err := readAuthorities("--client-ca", file)
	if err != nil {
		return nil, err
	}
	a := &authorities{config: plain.Clone(), known: map[string]bool{}}
	a.config.ClientCAs = x509.NewCertPool()
	for _, one := range all {
		a.config.ClientCAs.AddCert(one)
		a.known[string(one.Raw)] = true
	}
	return a, nil
}

// user returns the user whose certificate a connection has, if an authority that is trusted now has
// signed it: the connection may have begun when others were.
func (a *authorities) user(r *http.Request) (serve.User, error) {
	if r.TLS == nil {
		return serve.User{}, serve.ErrUnauthenticated
	}
	var trusted [][]*x509.Certificate // one of these has to be valid still, not just any
	for _, chain := range r.TLS.VerifiedChains {
		if a.known[string(chain[len(chain)-1].Raw)] {
			trusted = append(trusted, chain)
		}
	}
	return serve.ClientCertificates(&http.Request{TLS: &tls.ConnectionState{VerifiedChains: trusted}})
}

// reachedAt returns the host and the port at which clients reach the server: the first of its
// names that the certificate covers, if there is a certificate.
func (o *Options) reachedAt(at net.Addr, certificate *x509.Certificate) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return at.String() // cannot happen: it is an address of TCP
	}
	names := append([]string{host}, o.Hosts...)
	if net.ParseIP(host).IsUnspecified() {
		names = names[1:] // no client can go there
	}
	names = append(names, "localhost", "127.0.0.1")
	best := 0
	if certificate != nil {
		best = max(0, slices.IndexFunc(names, func(name string) bool { return certificate.VerifyHostname(name) == nil }))
	}
	return net.JoinHostPort(names[best], port)
}
