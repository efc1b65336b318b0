package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// maxErrorBody is how many bytes of the body of a failure are read.
const maxErrorBody = 64 << 10

// request is one request to the server.
type request struct {
	method string
	// namespace, name and subresource are parts of the path; empty ones are left out.
	namespace, name, subresource string
	query                        url.Values
	body                         []byte
	// media is the media type of the body; "" is JSON.
	media string
	// read reads the answer while it arrives, if that is a list, which may have [Config].MaxListBytes bytes; otherwise
	// it is nil.
	read func(*arriving) error
	// revised, if it is not nil, is called with the revision of a list as soon as that has arrived, and its error ends
	// the request; part is called for each part of the list, see arriving.
	revised func(store.Revision) error
	part    func()
	// only restricts a list to objects of that name, and prefix to those whose key has it; "" is all.
	only, prefix string
}

// url returns the request's URL.
func (b *Backend) url(r *request) string {
	segments := []string{b.config.URL, b.kind.APIPath()}
	if r.namespace != "" {
		segments = append(segments, "namespaces", url.PathEscape(r.namespace))
	}
	segments = append(segments, b.kind.Plural)
	for _, s := range []string{r.name, r.subresource} {
		if s != "" {
			segments = append(segments, url.PathEscape(s))
		}
	}
	path, err := url.JoinPath(segments[0], segments[1:]...)
	if err != nil {
		path = segments[0] // cannot happen: the URL has been parsed
	}
	if len(r.query) > 0 {
		path += "?" + r.query.Encode()
	}
	return path
}

// named returns a request for the object under key. It fails with [store.ErrInvalidKey]:
// the path of an invalid key may be that of the collection, which a DELETE empties.
func named(method, key string) (*request, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	namespace, name := registry.SplitKey(key)
	return &request{method: method, namespace: namespace, name: name, query: url.Values{}}, nil
}

// send sends the request and returns the answer, whose body the caller closes. A status
// of 300 or more is a [*StatusError]. A failure to reach the server is a
// [backend.ErrUnavailable], as an [unsentError] if there was no connection. So is the cause of
// a ctx that was done before.
func (b *Backend) send(ctx context.Context, client *http.Client, r *request) (*http.Response, error) {
	accept := jsonType
	if r.method == http.MethodGet && !b.config.KeepManagedFields {
		accept = leanType
	}
	return b.config.send(ctx, client, outgoing{r.method, b.url(r), accept, cmp.Or(r.media, jsonType), r.body})
}

const (
	// jsonType is the media type of most bodies, and of answers.
	jsonType = "application/json"
	// leanType asks for objects without managed fields. Servers that do not know the
	// parameter ignore it.
	leanType = "application/json;drop=metadata.managedFields,application/json"
)

// outgoing is a request as it is sent. media is the media type of the body, which a GET does not have.
type outgoing struct {
	method, url, accept, media string
	body                       []byte
}

// send sends a request with the credentials of c.
func (c *Config) send(ctx context.Context, client *http.Client, r outgoing) (*http.Response, error) {
	var reached reach
	req, err := http.NewRequestWithContext(reached.trace(ctx), r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return nil, unsentError{err}
	}
	req.Header.Set("Accept", r.accept)
	if r.method != http.MethodGet {
		req.Header.Set("Content-Type", r.media)
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, unsentError{cause}
	}
	resp, err := safeRedirects(client).Do(req)
	if err != nil {
		err = cmp.Or(context.Cause(ctx), unreachable(err))
		if reached.nothing() {
			err = unsentError{err}
		}
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // without a Status in it, the code says enough
	return nil, statusErrorOf(r.method+" "+req.URL.Path, resp, text)
}

// reach is how far a request has come.
type reach struct {
	// dialed: the transport has looked for a connection; connected: it has found one.
	dialed, connected atomic.Bool
}

// trace returns a context with which a request notes how far it has come. A transport of the
// user's may not do so.
func (r *reach) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { r.dialed.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { r.connected.Store(true) },
	})
}

// nothing reports whether it is known that there was no connection, so that nothing was sent.
func (r *reach) nothing() bool { return r.dialed.Load() && !r.connected.Load() }

// token returns the bearer token of a request with ctx; "" is none.
func (c *Config) token(ctx context.Context) (token string, err error) {
	if c.TokenSource == nil {
		return c.Token, nil
	}
	panicked := usercode.Call("Config.TokenSource", "", func() { token, err = c.TokenSource(ctx) })
	if err = cmp.Or(panicked, err); err == nil && strings.ContainsFunc(token, unicode.IsControl) {
		err = errors.New("it " + noToken)
	}
	if err == nil {
		return token, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return "", unsentError{cause}
	}
	return "", unsentError{fmt.Errorf("%w: remote.Config.TokenSource has no token: %w", backend.ErrUnavailable, err)}
}

// answer is what the server has answered. Its header may be nil.
type answer struct {
	body   []byte
	header http.Header
	code   int
	// storage identifies the storage of a list, "" if it does not say.
	storage string
}

// created reports whether a write has created the object.
func (a *answer) created() bool { return a.code == http.StatusCreated }

// do sends the request within [Config].RequestTimeout, and returns the answer: of a
// [*StatusError] the header alone. The answer to a list has as long for each part of it, and has been read.
func (b *Backend) do(ctx context.Context, r *request) (answer, error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	late := time.AfterFunc(b.config.RequestTimeout, func() { giveUp(b.config.noAnswer()) })
	defer late.Stop()
	resp, err := b.send(ctx, b.client, r)
	if status, refused := errors.AsType[*StatusError](err); refused {
		return answer{header: status.header}, err
	}
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{header: resp.Header, code: resp.StatusCode}
	if r.read != nil {
		a.storage = b.storageOf(resp.Header) // now: by the end of the body there may be newer answers
		return a, r.read(&arriving{ctx: ctx, from: resp.Body, late: late, wait: b.config.RequestTimeout, part: r.part, tooLarge: b.tooLarge(r)})
	}
	if a.body, err = readBody(ctx, resp.Body, b.tooLarge(r)); err != nil {
		return answer{}, err
	}
	return a, nil
}

// tooLarge is the error of an answer to r with more bytes than it may have.
func (b *Backend) tooLarge(r *request) *SizeError {
	e := b.config.tooLarge(r.method + " " + b.url(r))
	if r.read != nil {
		e.Limit, e.Field = b.config.MaxListBytes, "MaxListBytes"
	}
	return e
}

// tooLarge is the error of an answer, other than a list, with more bytes than it may have.
func (c *Config) tooLarge(request string) *SizeError {
	return &SizeError{Request: request, Limit: c.maxObject(), Field: "BufferBytes"}
}

// readBody reads the body of an answer to a request with ctx. It returns tooLarge if that has more
// bytes than its limit.
func readBody(ctx context.Context, body io.Reader, tooLarge *SizeError) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, max(int64(tooLarge.Limit), int64(tooLarge.Limit)+1))) // the largest number is not a limit
	switch {
	case err == nil && len(text) > tooLarge.Limit:
		return nil, tooLarge
	case err == nil:
		return text, nil
	}
	return nil, brokenOff(ctx, err)
}

// brokenOff is the error of an answer to a request with ctx whose body has failed with err.
func brokenOff(ctx context.Context, err error) error {
	return unreachable(cmp.Or(context.Cause(ctx), err))
}

// noAnswer is the error of a request that took longer than RequestTimeout.
func (c *Config) noAnswer() error {
	return fmt.Errorf("%w: no answer within %v (remote.Config.RequestTimeout)", backend.ErrUnavailable, c.RequestTimeout)
}

// unsentError is a failure, or the end of the call, before a connection: the server cannot have
// received the request.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// unreachable returns err as a [backend.ErrUnavailable].
func unreachable(err error) error {
	wrapped := err
	if !errors.Is(err, backend.ErrUnavailable) {
		wrapped = fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
	var dial *net.OpError
	switch {
	case !errors.As(err, &dial) || dial.Op != "dial":
		return wrapped
	case errors.Is(err, context.DeadlineExceeded): // the dialer's own, and not that of the call
		wrapped = fmt.Errorf("%w: %v", backend.ErrUnavailable, err)
	}
	return unsentError{wrapped}
}

// outcome returns the error of a write. If the server may have carried the write out
// without saying so, that is a [*backend.UncertainError].
func outcome(verb, key string, err error) error {
	var status *StatusError
	var unsent unsentError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unsent), errors.As(err, &status) && status.Status.Code < http.StatusInternalServerError:
		return err
	}
	return &backend.UncertainError{Verb: verb, Key: key, Cause: err}
}

// unread returns the error of a write that the server has accepted, but whose answer, or what
// the answer leaves out, cannot be read.
func unread(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	return &backend.UncertainError{Verb: verb, Key: key, Cause: err}
}
