package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmill/watchmill/engine"
)

// User is the user that sends a request.
type User struct {
	Name   string
	Groups []string
	// UID tells the user from earlier ones of that name; empty if users have none.
	UID string
	// Extra is what else the authentication knows of the user, by keys in lower case; nil for
	// nothing.
	Extra map[string][]string
}

// Anonymous is the user of every request to a server without authentication.
var Anonymous = User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}

// userKey is the key of a request's user in its context.
type userKey struct{}

// UserOf returns the user whose request has called a function with ctx: one of a kind's Strategy and
// Admitters, a method of a [registry.Resource], or Authorize, Audit or MetricsHandler of [Config].
// found is false for a call by the process itself. A request that impersonates a user is that user's,
// except while Authorize decides whether it may.
func UserOf(ctx context.Context) (u User, found bool) {
	u, found = ctx.Value(userKey{}).(User)
	return u, found
}

// identity is whose request it is. It stays the same once the request has a place, which is the user's.
type identity struct {
	user   User  // the one whose rights and limits apply
	sender *User // the one that acts as user; nil if user has sent the request itself
}

// withUser returns ctx with the user.
func (i *identity) withUser(ctx context.Context) context.Context {
	return context.WithValue(ctx, userKey{}, i.user)
}

// actAs has the user, which has sent the request, act as another.
func (i *identity) actAs(other User) {
	sender := i.user
	i.sender, i.user = &sender, other
}

// authenticate returns the user of a request.
func (c *call) authenticate() error {
	if c.cfg.Authenticate == nil {
		return nil
	}
	user, err := c.cfg.Authenticate(c.r)
	if err != nil {
		if !errors.Is(err, ErrUnauthenticated) {
			c.unknown.log(c.log, "authentication failed", "path", c.req.Path, "from", c.r.RemoteAddr, "error", err)
		}
		if c.w.OfStream() {
			c.w.Header().Set("Connection", "close") // many could be tried at a time, without end
		}
		return apierrors.NewUnauthorized(ErrUnauthenticated.Error())
	}
	c.user = user
	return nil
}

// mayCreate refuses the creation of an object by an update or an apply that the user may not
// create.
func (c *call) mayCreate(context.Context) error {
	create := *c.req
	create.Verb = "create"
	return c.authorize(&create)
}

// authorize refuses a request that the user may not send.
func (c *call) authorize(req *Request) error {
	if c.cfg.Authorize == nil {
		return nil
	}
	if err := c.cfg.Authorize(c.withUser(c.r.Context()), c.user, req); err != nil {
		about := c.req.subject()
		return apierrors.NewForbidden(about.Resource, about.Name, err)
	}
	return nil
}

// ErrUnauthenticated: the request has no credentials, or wrong ones. Any other error of
// [Config].Authenticate is logged as a failure.
var ErrUnauthenticated = errors.New("the server has asked for the client to provide credentials")

// BearerTokens returns a function for [Config].Authenticate that identifies users by the
// token of their Authorization header; an empty token identifies no user. Tokens are compared
// in constant time, so that the time of an answer tells nothing about them. The function is
// safe for concurrent use; its error is [ErrUnauthenticated].
//
// kubectl, and client-go with a kubeconfig, send a token to a server with TLS alone. Without
// it they are refused as if they had none.
func BearerTokens(users map[string]User) func(*http.Request) (User, error) {
	type known struct {
		sum  [sha256.Size]byte
		user User
	}
	all := make([]known, 0, len(users))
	for token, user := range users {
		all = append(all, known{sha256.Sum256([]byte(token)), user})
	}
	return func(r *http.Request) (User, error) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(scheme, "bearer") || token == "" {
			return User{}, ErrUnauthenticated
		}
		sum, found := sha256.Sum256([]byte(token)), -1
		for i := range all {
			if subtle.ConstantTimeCompare(sum[:], all[i].sum[:]) == 1 {
				found = i
			}
		}
		if found < 0 {
			return User{}, ErrUnauthenticated
		}
		return all[found].user, nil
	}
}

// ClientCertificates is a function for [Config].Authenticate that identifies users by the
// certificate of their TLS connection: its common name is the name, and its organisations are
// the groups. The listener must have verified the certificate
// (tls.VerifyClientCertIfGiven). Once it has expired, or a certificate that it was verified
// with, it identifies no user, even if its connection lasts. The error is [ErrUnauthenticated].
func ClientCertificates(r *http.Request) (User, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return User{}, ErrUnauthenticated
	}
	now := time.Now()
	isValid := func(chain []*x509.Certificate) bool {
		return !slices.ContainsFunc(chain, func(c *x509.Certificate) bool { return !c.NotAfter.IsZero() && now.After(c.NotAfter) })
	}
	if !slices.ContainsFunc(r.TLS.VerifiedChains, isValid) {
		return User{}, ErrUnauthenticated
	}
	subject := r.TLS.VerifiedChains[0][0].Subject
	if subject.CommonName == "" {
		return User{}, ErrUnauthenticated
	}
	return User{Name: subject.CommonName, Groups: subject.Organization}, nil
}

// FirstOf returns a function for [Config].Authenticate that calls the given functions in
// order and returns the first user without an error. If all fail, the error is [ErrUnauthenticated]
// or, if there are any others, these joined. FirstOf panics with an [*engine.ConfigError] if one of
// the functions is nil, which otherwise requests would do.
func FirstOf(all ...func(*http.Request) (User, error)) func(*http.Request) (User, error) {
	for i, authenticate := range all {
		if authenticate == nil {
			panic(&engine.ConfigError{Field: fmt.Sprintf("all[%d]", i), Problem: "is nil; give a function that identifies users, or leave it out"})
		}
	}
	return func(r *http.Request) (User, error) {
		var failed []error
		for _, authenticate := range all {
			u, err := authenticate(r)
			switch {
			case err == nil:
				return u, nil
			case !errors.Is(err, ErrUnauthenticated):
				failed = append(failed, err)
			}
		}
		return User{}, cmp.Or(errors.Join(failed...), ErrUnauthenticated)
	}
}
