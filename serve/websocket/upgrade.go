package websocket

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
)

// Options configures [New]. The zero value means the defaults.
type Options struct {
	// Origins are the origins whose pages may watch besides the server's own, such as
	// https://console.example.com. They are compared exactly, but for a port that the scheme implies.
	Origins []string
	// Ping is the time between two pings of a connection, and Pong how long the answer to one may
	// take, of which the client has at most 5 s to take the ping. Zero means 25 s and 15 s. No ping is
	// sent while an event is, whose limit is [serve.Limits].WriteStall. The answer to the close of a
	// connection may take as long as one to a ping, but at most 5 s.
	Ping, Pong time.Duration
}

// validate returns an [*engine.ConfigError] for the first field that is wrong, except Origins, which New
// finds when it adds them.
func (o *Options) validate() error {
	switch {
	case o.Ping < 0:
		return &engine.ConfigError{Field: "Options.Ping", Problem: "is negative; zero means 25 s"}
	case o.Pong < 0:
		return &engine.ConfigError{Field: "Options.Pong", Problem: "is negative; zero means 15 s"}
	}
	return nil
}

// withDefaults returns o with defaults for the fields that are zero.
func (o Options) withDefaults() Options {
	o.Ping = cmp.Or(o.Ping, 25*time.Second)
	o.Pong = cmp.Or(o.Pong, 15*time.Second)
	return o
}

// Upgrader is the [serve.Upgrader] over WebSocket. It is safe for concurrent use.
type Upgrader struct {
	origins    *http.CrossOriginProtection
	ping, pong time.Duration
}

var _ serve.Upgrader = (*Upgrader)(nil)

// New returns an upgrader. An error is an [*engine.ConfigError] that names the field.
func New(options Options) (*Upgrader, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	u := &Upgrader{origins: http.NewCrossOriginProtection(), ping: options.Ping, pong: options.Pong}
	for _, origin := range options.Origins {
		allowed, _ := withoutImpliedPort(origin)
		if err := u.origins.AddTrustedOrigin(allowed); err != nil {
			return nil, &engine.ConfigError{Field: "Options.Origins", Problem: fmt.Sprintf("has %q: give scheme://host[:port]", origin)}
		}
	}
	return u, nil
}

// Wants reports whether a request is a handshake. It refuses a handshake of a foreign
// origin, and one that cannot be completed.
func (u *Upgrader) Wants(r *http.Request) (bool, error) {
	if !asks(r) {
		return false, nil
	}
	if err := u.origins.Check(asWrite(r)); err != nil {
		return false, apierrors.NewForbidden(schema.GroupResource{}, "", err)
	}
	keys := r.Header.Values("Sec-Websocket-Key")
	if r.Method != http.MethodGet || r.Header.Get("Sec-Websocket-Version") != "13" || len(keys) != 1 || !isKey(keys[0]) {
		return false, apierrors.NewBadRequest("the WebSocket handshake is not valid: it is a GET with Sec-WebSocket-Version 13 and a Sec-WebSocket-Key")
	}
	if _, _, err := protocols(r); err != nil {
		return false, apierrors.NewBadRequest(err.Error())
	}
	return true, nil
}

// asWrite returns a request whose origin is checked for a read as for a write. It has no port that its scheme
// implies: clients that are no browsers, such as fabric8's in Java, name such a port in the Origin alone.
func asWrite(r *http.Request) *http.Request {
	written := r.WithContext(r.Context())
	written.Method = http.MethodPost
	if origin, implied := withoutImpliedPort(r.Header.Get("Origin")); implied != "" {
		written.Header = r.Header.Clone()
		written.Header.Set("Origin", origin)
		written.Host = strings.TrimSuffix(r.Host, implied)
	}
	return written
}

// withoutImpliedPort returns an origin without a port that its scheme implies, and what it has left out, such as
// :443; "" for nothing.
func withoutImpliedPort(origin string) (without, implied string) {
	u, err := url.Parse(origin)
	if err != nil || u.Port() == "" || u.Port() != impliedPorts[u.Scheme] {
		return origin, ""
	}
	implied = ":" + u.Port()
	u.Host = strings.TrimSuffix(u.Host, implied)
	return u.String(), implied
}

var impliedPorts = map[string]string{"http": "80", "https": "443"}

// asks reports whether a request asks for an upgrade to WebSocket.
func asks(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) && hasToken(r.Header, "Connection", "upgrade") && hasToken(r.Header, "Upgrade", "websocket")
}

func hasToken(h http.Header, name, token string) bool {
	for one := range strings.SplitSeq(strings.Join(h.Values(name), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(one), token) {
			return true
		}
	}
	return false
}

// isKey reports whether a key is 16 bytes in base64.
func isKey(key string) bool {
	bytes, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key))
	return err == nil && len(bytes) == 16
}

// tokenProtocol begins a subprotocol that holds a bearer token.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

// protocols returns the first subprotocol that a client offers, and the bearer token
// among the subprotocols; both may be empty.
func protocols(r *http.Request) (first, token string, err error) {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Sec-Websocket-Protocol"), ","), ",") {
		one = strings.TrimSpace(one)
		encoded, isToken := strings.CutPrefix(one, tokenProtocol)
		switch {
		case !isToken:
			first = cmp.Or(first, one)
			continue
		case token != "":
			return "", "", errors.New("the subprotocols have more than one token")
		}
		text, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || len(text) == 0 {
			return "", "", errors.New("the subprotocols have a token that is not in base64url")
		}
		token = string(text)
	}
	if token != "" && first == "" {
		return "", "", errors.New("the subprotocols have nothing but a token: offer another one, which the server can choose")
	}
	return first, token, nil
}

// Tokens returns a function for [serve.Config].Authenticate that identifies users as next
// does. If a handshake has no Authorization header, the bearer token is taken from its
// subprotocols, where a browser can put it:
//
//	new WebSocket(url, ["base64url.bearer.authorization.k8s.io." + base64url(token), "watch"])
//
// It panics with an [*engine.ConfigError] if next is nil, which otherwise every request would do.
func Tokens(next func(*http.Request) (serve.User, error)) func(*http.Request) (serve.User, error) {
	if next == nil {
		panic(&engine.ConfigError{Field: "next", Problem: "is nil; give a function that identifies users, such as of serve.BearerTokens"})
	}
	return func(r *http.Request) (serve.User, error) {
		if !asks(r) || r.Header.Get("Authorization") != "" {
			return next(r)
		}
		_, token, err := protocols(r)
		if err != nil || token == "" {
			return next(r)
		}
		with := r.WithContext(r.Context())
		with.Header = r.Header.Clone()
		with.Header.Set("Authorization", "Bearer "+token)
		return next(with)
	}
}

// Upgrade answers a handshake, as [serve.Upgrader] says. Call it only for one that Wants has
// found: it does not check the origin again.
func (u *Upgrader) Upgrade(w http.ResponseWriter, r *http.Request, gone func(error)) (serve.Messages, error) {
	first, _, err := protocols(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, err
	}
	options := &websocket.AcceptOptions{InsecureSkipVerify: true} // Wants has checked the origin, and by the scheme, too
	if first != "" {
		options.Subprotocols = []string{first}
	}
	taken := &taken{ResponseWriter: w}
	socket, err := websocket.Accept(taken, r, options)
	if err != nil {
		return nil, err
	}
	return newConnection(socket, taken.conn, u, gone), nil
}

// taken keeps the connection that is taken over.
type taken struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements [http.Hijacker].
func (t *taken) Hijack() (conn net.Conn, buffered *bufio.ReadWriter, err error) {
	conn, buffered, err = http.NewResponseController(t.ResponseWriter).Hijack()
	t.conn = conn
	return conn, buffered, err
}
