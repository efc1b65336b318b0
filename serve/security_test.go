package serve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

func TestSecurity_HostsAndOrigins(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Hosts = []string{"mill.example.com"} })
	for host, want := range map[string]int{
		"evil.example.com": 400, "evil.example.com:8080": 400, "localhost": 200, "localhost:1": 200, "[::1]:80": 200,
		"10.1.2.3": 200, "mill.example.com": 200, "MILL.example.com:443": 200, "mill.example.com.evil.com": 400,
		"app.localhost": 200, "localhost.evil.example.com": 400, "evillocalhost": 400,
	} {
		require.Equal(t, want, s.get("/apis", "Host", host).code, host)
	}
	require.Equal(t, "HTTP/1.0 200 OK", s.raw("GET /apis HTTP/1.0\r\n\r\n"), "no browser leaves the host out")
	require.Contains(t, s.get("/apis", "Host", "evil.example.com").body, "add the name to those of the server (serve.Config.Hosts, or watchmill serve --host)")
	cross := s.do("POST", inDefault, `{"metadata":{"name":"a"}}`, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example.com")
	require.Equal(t, 403, cross.code)
	require.Equal(t, 403, s.do("DELETE", inDefault+"/a", "", "Origin", "https://evil.example.com").code)
	require.Empty(t, s.get("/apis", "Origin", "https://evil.example.com").header.Get("Access-Control-Allow-Origin"))
}

// A connection may outlive the certificate that it began with, and that of the authority.
func TestSecurity_ClientCertificatesExpireOnOpenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) *x509.Certificate {
			return &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, NotAfter: time.Now().Add(d)}
		}
		mine := in(2 * time.Hour)
		r := &http.Request{TLS: &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{mine, in(time.Hour)}, {mine, in(3 * time.Hour)}}}}
		for _, want := range []error{nil, nil, serve.ErrUnauthenticated} {
			_, err := serve.ClientCertificates(r)
			require.ErrorIs(t, err, want)
			time.Sleep(61 * time.Minute)
		}
		_, err := serve.ClientCertificates(&http.Request{TLS: &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{in(time.Hour), in(-time.Hour)}}}})
		require.ErrorIs(t, err, serve.ErrUnauthenticated)
	})
}

func TestSecurity_ClientCertificates(t *testing.T) {
	subject := pkix.Name{CommonName: "alice", Organization: []string{"admins", "users"}}
	chains := func(s pkix.Name) [][]*x509.Certificate { return [][]*x509.Certificate{{{Subject: s}}} }
	u, err := serve.ClientCertificates(&http.Request{TLS: &tls.ConnectionState{VerifiedChains: chains(subject)}})
	require.NoError(t, err)
	require.Equal(t, serve.User{Name: "alice", Groups: []string{"admins", "users"}}, u)
	for name, connection := range map[string]*tls.ConnectionState{
		"no TLS": nil, "no certificate": {}, "no name": {VerifiedChains: chains(pkix.Name{Organization: []string{"admins"}})},
		"not verified": {PeerCertificates: chains(subject)[0]},
	} {
		_, err := serve.ClientCertificates(&http.Request{TLS: connection})
		require.ErrorIs(t, err, serve.ErrUnauthenticated, name)
	}
}

// A kind's rules may depend on the user, in each write of a request; a write in the process has none.
func TestSecurity_RulesOfAKindKnowTheUser(t *testing.T) {
	var known []string
	s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
		c.Authenticate = serve.BearerTokens(map[string]serve.User{"secret-a": {Name: "alice"}})
		w.Strategy.Prepare = func(ctx context.Context, _, _ *Widget) {
			u, found := serve.UserOf(ctx)
			known = append(known, fmt.Sprint(u.Name, " ", found))
		}
	})
	const token = "Bearer secret-a"
	require.Equal(t, 201, s.do("POST", inDefault, `{"metadata":{"name":"a"}}`, "Authorization", token).code)
	require.Equal(t, 200, s.do("PATCH", inDefault+"/a", `{"spec":{"size":2}}`, "Authorization", token, "Content-Type", mergePatch).code)
	_, err := s.widgets.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"alice true", "alice true", " false"}, known)
}

// A 401 that is not a fault of the client's is in the log, now and then.
func TestSecurity_FailuresOfAuthenticationAreLogged(t *testing.T) {
	var log logged
	var failure error
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		failure = serve.ErrUnauthenticated
		require.Equal(t, 401, s.get(inDefault).code)
		require.Equal(t, []string{""}, log.lines())
		failure = errors.New("the provider is down")
		for range 3 {
			require.Equal(t, 401, s.get(inDefault).code)
		}
		require.Len(t, log.lines(), 1)
		time.Sleep(11 * time.Second)
		require.Equal(t, 401, s.get(inDefault).code)
	}, func(c *serve.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Authenticate = serve.FirstOf(serve.ClientCertificates, func(*http.Request) (serve.User, error) { return serve.User{}, failure })
	})
	require.Len(t, log.lines(), 2)
	require.Contains(t, log.lines()[1], `msg="authentication failed" path=`+inDefault)
	require.Contains(t, log.lines()[1], `error="the provider is down" others=2`)
}

// The panic is where the function is given, and not in a request.
func TestSecurity_NoAuthenticationIsRefusedAmongOthers(t *testing.T) {
	require.PanicsWithError(t, "invalid configuration: all[1] is nil; give a function that identifies users, or leave it out",
		func() { serve.FirstOf(serve.ClientCertificates, nil) })
}

// Over HTTP/2 a client could try 250 credentials at a time for ever, over one connection: the first answer ends
// it, as in Kubernetes. Over HTTP/1.1 it tries one at a time.
func TestSecurity_RefusedCredentialsEndConnectionsOfHTTP2(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		var reused []bool
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = append(reused, info.Reused) }})
		for range 2 {
			resp := s.send(ctx, "GET", inDefault, "", "Authorization", "Bearer guess")
			_, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 401, resp.StatusCode)
			synctest.Wait()
		}
		require.Equal(t, []bool{false, strings.HasSuffix(t.Name(), "HTTP/1.1")}, reused)
	}, func(c *serve.Config) {
		c.Authenticate = serve.BearerTokens(map[string]serve.User{"secret": {Name: "alice"}})
	})
}

// An empty token, as of a variable that is not set, identifies no user.
func TestSecurity_EmptyBearerTokenIsNone(t *testing.T) {
	authenticate := serve.BearerTokens(map[string]serve.User{"": {Name: "root"}})
	for _, header := range []string{"Bearer", "Bearer ", "Bearer  ", "Bearer \t"} {
		_, err := authenticate(&http.Request{Header: http.Header{"Authorization": {header}}})
		require.ErrorIs(t, err, serve.ErrUnauthenticated, "%q", header)
	}
}

func TestSecurity_BearerTokens(t *testing.T) {
	var mu sync.Mutex
	var audited []string
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authenticate = serve.FirstOf(serve.ClientCertificates, serve.BearerTokens(map[string]serve.User{
			"secret-a": {Name: "alice", Groups: []string{"admins"}}, "secret-b": {Name: "bob"},
		}))
		c.Authorize = func(_ context.Context, u serve.User, r *serve.Request) error {
			if u.Name == "alice" || r.Verb == "get" || !r.IsResource() {
				return nil
			}
			return fmt.Errorf("%s may not %s %s %q", u.Name, r.Verb, r.Resource, r.Name)
		}
		c.Audit = func(_ context.Context, e serve.Audited) {
			mu.Lock()
			defer mu.Unlock()
			audited = append(audited, fmt.Sprintf("%s %s %s %d", e.User.Name, e.Request.Verb, e.Request.Name, e.Code))
		}
	})
	for header, want := range map[string]int{"": 401, "Bearer": 401, "Bearer x": 401, "Basic secret-a": 401, "Bearer secret-a ": 200, "bearer secret-b": 200} {
		a := s.get("/apis", "Authorization", header)
		require.Equal(t, want, a.code, "%q", header)
		if want == 401 {
			require.Equal(t, "Unauthorized", a.str("reason"))
		}
	}
	s.becomes("/readyz", "ok") // also without credentials
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	require.Equal(t, 201, s.do("POST", inDefault, `{"metadata":{"name":"w"},"spec":{"size":1}}`, as("secret-a")...).code)
	require.Equal(t, 200, s.get(inDefault+"/w", as("secret-b")...).code)
	denied := s.get(inDefault+"?watch=1&fieldSelector=metadata.name%3Dw", as("secret-b")...)
	require.Equal(t, 403, denied.code)
	require.Contains(t, denied.str("message"), `bob may not watch widgets "w"`)
	require.Equal(t, "Forbidden widgets", denied.str("reason")+" "+denied.str("details.kind"))
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, audited, "alice create w 201")
	require.Contains(t, audited, "bob watch w 403")
	require.Contains(t, audited, "system:anonymous get  401")
}

func TestSecurity_UpdatesThatMayCreateNeedToBeAllowedTo(t *testing.T) {
	var asked []string
	audited := make(chan string, 10)
	s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
		w.Strategy.CreateOnUpdate = true
		c.Audit = func(_ context.Context, e serve.Audited) { audited <- e.Request.Verb }
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			asked = append(asked, r.Verb+" "+r.Namespace+"/"+r.Name)
			if r.Verb == "create" {
				return errors.New("no")
			}
			return nil
		}
	})
	const body = `{"metadata":{"name":"a"}}`
	require.Equal(t, 403, s.do("PUT", inDefault+"/a", body).code)
	require.Equal(t, []string{"update default/a", "create default/a"}, asked)
	require.Equal(t, "update", <-audited)
	require.Equal(t, 404, s.get(inDefault+"/a").code)
	_, err := s.widgets.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, 200, s.do("PUT", inDefault+"/a", body).code, "one that creates nothing needs not")
}

func TestLimits_OfWatches(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.Watches, c.Limits.WatchesPerUser = 3, 2
		c.Authenticate = func(r *http.Request) (serve.User, error) { return serve.User{Name: r.Header.Get("User")}, nil }
	})
	s.watch(inDefault+"?watch=1", "User", "a")
	s.watch(inDefault+"?watch=1", "User", "a")
	mine := s.get(inDefault+"?watch=1", "User", "a")
	require.Equal(t, "429 1", fmt.Sprintf("%d %s", mine.code, mine.header.Get("Retry-After")))
	require.Contains(t, mine.str("message"), "one user")
	s.watch(inDefault+"?watch=1", "User", "b")
	require.Contains(t, s.get(inDefault+"?watch=1", "User", "c").str("message"), "the server has as many watches")
	require.Equal(t, 200, s.get(inDefault, "User", "a").code, "reads are counted apart")
}

func TestLimits_OfRequestsInFlight(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
		c.Limits.Writes = 1
		w.Admit = []registry.Admitter{registry.AdmitFunc(func(context.Context, *registry.Admission) error {
			close(entered)
			<-leave
			return nil
		})}
	})
	var all sync.WaitGroup
	all.Go(func() { s.create("a", 1) })
	<-entered
	require.Equal(t, 429, s.do("POST", inDefault, `{"metadata":{"name":"b"}}`).code)
	require.Equal(t, 200, s.get(inDefault).code)
	require.Equal(t, 1, s.handler.Stats().InFlight)
	close(leave)
	all.Wait()
}

// Authorize decides on a creation without a name, which no parameter can give it.
func TestAuthorize_CreationsHaveNoName(t *testing.T) {
	var asked []string
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			asked = append(asked, strings.TrimSpace(r.Verb+" "+r.Name))
			return nil
		}
	})
	const selector = "?fieldSelector=metadata.name%3Dmine"
	require.Equal(t, 201, s.do("POST", inDefault+selector, `{"metadata":{"name":"other"}}`).code)
	require.Equal(t, 200, s.get(inDefault+"/other"+selector).code)
	require.Equal(t, 200, s.get(inDefault+selector).code)
	require.Equal(t, 200, s.do("DELETE", inDefault+selector, "").code)
	require.Equal(t, []string{"create", "get other", "list mine", "deletecollection mine"}, asked)
}

// Reads have a bound of their own, and leave room for writes.
func TestLimits_OfReadsInFlight(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.Reads = 1
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			if r.Name == "slow" {
				close(entered)
				<-leave
			}
			return nil
		}
	})
	var all sync.WaitGroup
	all.Go(func() { s.get(inDefault + "/slow") })
	<-entered
	refused := s.get(inDefault)
	require.Equal(t, "429 1", fmt.Sprintf("%d %s", refused.code, refused.header.Get("Retry-After")))
	require.Equal(t, 429, s.get("/apis").code, "documents are reads, too")
	s.create("a", 1)
	close(leave)
	all.Wait()
	require.Eventually(t, func() bool { return s.handler.Stats().InFlight == 0 }, time.Minute, time.Millisecond)
	require.Equal(t, 200, s.get(inDefault).code)
}

// createLarge makes a widget of that many bytes, in the process: the limits that a test
// sets for a client that does not read are not for this.
func (s *server) createLarge(name string, bytes int) {
	s.t.Helper()
	large := Widget{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", Annotations: map[string]string{"a": strings.Repeat("x", bytes)},
	}}
	_, err := s.widgets.Create(s.t.Context(), large, registry.WriteOptions{})
	require.NoError(s.t, err)
}

// A client that never reads is cut off.
func TestLimits_ClientThatNeverReads(t *testing.T) {
	var ended chan error
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		conn, err := s.client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "localhost:80")
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET %s?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", inDefault)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil) // its header, and no event
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		began := time.Now()
		s.createLarge("w", 200_000)
		require.Error(t, <-ended)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Zero(t, s.handler.Stats().Watches)
	}, func(c *serve.Config) {
		ended = make(chan error, 1)
		c.Limits.WriteStall = 10 * time.Second
		c.Audit = func(_ context.Context, e serve.Audited) {
			if e.Request.Verb == "watch" {
				ended <- e.End
			}
		}
	})
}

func TestPanics_AreContained(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			if r.Name == "boom" {
				panic("boom")
			}
			return nil
		}
	})
	a := s.get(inDefault + "/boom")
	require.Equal(t, "500 InternalError", fmt.Sprintf("%d %s", a.code, a.str("reason")))
	require.NotContains(t, a.body, "boom\"", "the panic's text is for the log")
	require.Equal(t, 200, s.get(inDefault).code)
}
