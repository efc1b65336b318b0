package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// Other machines may reach a server that encrypts and knows its users, or that is told that it
// need not. Without a host only this machine reaches it.
func TestListen_ListensWhereItMay(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS() // for its certificate
	certified.Close()
	certificate := &certified.TLS.Certificates[0]
	plain := func(*http.Request) (serve.User, error) { return serve.User{Name: "a"}, nil }
	for name, c := range map[string]struct {
		at       serve.ListenOptions
		users    func(*http.Request) (serve.User, error)
		loopback bool
	}{
		"no host":    {serve.ListenOptions{Address: ":0"}, nil, true},
		"a name":     {serve.ListenOptions{Address: "localhost:0"}, nil, true},
		"insecure":   {serve.ListenOptions{Address: "0.0.0.0:0", Insecure: true}, nil, false},
		"encrypted":  {serve.ListenOptions{Address: "0.0.0.0:0", TLS: &tls.Config{Certificates: certified.TLS.Certificates}}, plain, false},
		"no list":    {serve.ListenOptions{Address: "127.0.0.1:0", TLS: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }}}, nil, true},
		"by clients": {serve.ListenOptions{Address: "127.0.0.1:0", TLS: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return certified.TLS, nil }}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(_ *registry.Config[Widget], cfg *serve.Config) {
				cfg.Authenticate, cfg.Limits = c.users, serve.Limits{ShutdownDelay: 1, DrainWatches: 1}
			})
			ctx, stop := context.WithCancel(t.Context())
			c.at.Ready = func(at net.Addr) {
				require.Equal(t, c.loopback, at.(*net.TCPAddr).IP.IsLoopback())
				stop()
			}
			require.NoError(t, s.handler.ListenAndServe(ctx, c.at))
			require.Error(t, ctx.Err(), "it was ready")
		})
	}
}

func TestListen_TellsWhyItCannot(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	s := newServer(t)
	require.ErrorAs(t, s.handler.ListenAndServe(t.Context(), serve.ListenOptions{Address: taken.Addr().String()}), new(*net.OpError))
	encrypts := serve.ListenOptions{Address: "0.0.0.0:0", TLS: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }}}
	require.ErrorIs(t, s.handler.ListenAndServe(t.Context(), encrypts), engine.ErrConfig, "it encrypts, but has no users")
	reachable := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authenticate = func(*http.Request) (serve.User, error) { return serve.User{Name: "a"}, nil }
	})
	require.ErrorIs(t, reachable.handler.ListenAndServe(t.Context(), serve.ListenOptions{Address: "0.0.0.0:0"}), engine.ErrConfig, "it has users, but does not encrypt")
}

// Only this machine reaches a Unix socket, so it needs neither encryption nor users.
func TestListen_OnASocketThatIsOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	socket, err := net.Listen("unix", path)
	require.NoError(t, err)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
	})
	ctx, stop := context.WithCancel(t.Context())
	ready, served := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		served <- s.handler.ListenAndServe(ctx, serve.ListenOptions{Listener: socket, Ready: func(at net.Addr) { ready <- at }})
	}()
	require.Equal(t, path, (<-ready).String())
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	own := *s
	own.url, own.client = "http://localhost", &http.Client{Transport: transport}
	w := own.watch(inDefault + "?watch=1&resourceVersion=" + own.create("a", 1)) // it has no initial state to be cut
	own.create("b", 1)
	w.expect("ADDED b")
	stop()
	require.NoError(t, <-served)
	_, more := w.next()
	require.False(t, more)
	transport.CloseIdleConnections()
	_, err = net.Dial("unix", path)
	require.Error(t, err, "it is closed")
}

// A request whose user is not known yet is not waited for, but is told of: it may still use what the
// program closes next.
func TestListen_SaysThatRequestsAreStillRunning(t *testing.T) {
	var asked, known chan struct{}
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		asked, known = make(chan struct{}), make(chan struct{})
		p := pipenet.Listen()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.handler.ListenAndServe(ctx, serve.ListenOptions{Listener: p}) }()
		conn, err := p.Dial(t.Context())
		require.NoError(t, err)
		_, err = conn.Write([]byte("GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		require.NoError(t, err)
		<-asked
		stop()
		require.EqualError(t, <-served, "1 requests are still running, such as in Config.Authenticate")
		close(known)
	}, func(c *serve.Config) {
		c.Authenticate = func(*http.Request) (serve.User, error) {
			close(asked)
			<-known
			return serve.Anonymous, nil
		}
	})
}

// A watch whose client does not read does not end in time, and is cut off before ListenAndServe returns.
func TestListen_CutsOffWatchesThatDoNotEnd(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		p := pipenet.Listen()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.handler.ListenAndServe(ctx, serve.ListenOptions{Listener: p}) }()
		conn, err := p.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET %s?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", inDefault)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		s.create("a", 1)
		synctest.Wait()
		stop()
		require.ErrorIs(t, <-served, context.DeadlineExceeded)
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Watches)
	}, func(c *serve.Config) { c.Limits.WriteStall = 24 * time.Hour })
}

func TestListen_RefusesASocketThatOthersReach(t *testing.T) {
	s := newServer(t)
	for problem, at := range map[string]func(net.Listener) serve.ListenOptions{
		"which others can reach": func(l net.Listener) serve.ListenOptions { return serve.ListenOptions{Listener: l} },
		"and so is Address":      func(l net.Listener) serve.ListenOptions { return serve.ListenOptions{Listener: l, Address: ":0"} },
		"has no certificate": func(l net.Listener) serve.ListenOptions {
			return serve.ListenOptions{Listener: l, TLS: &tls.Config{}, Insecure: true}
		},
	} {
		socket, err := net.Listen("tcp", "0.0.0.0:0")
		require.NoError(t, err)
		err = s.handler.ListenAndServe(t.Context(), at(socket))
		require.ErrorIs(t, err, engine.ErrConfig)
		require.ErrorContains(t, err, problem)
		_, err = socket.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

// brokenListener accepts no more connections once it is told to fail.
type brokenListener struct {
	net.Listener
	accepted chan net.Conn
	fail     chan error
}

func (l brokenListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case err := <-l.fail:
		return nil, err
	}
}

// The watches that are running end as when the server is stopped, before the call returns.
func TestListen_DrainsIfTheListenerFails(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = time.Millisecond, time.Millisecond
	})
	from := s.create("a", 1)
	address, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := brokenListener{address, make(chan net.Conn), make(chan error)}
	served := make(chan error, 1)
	go func() { served <- s.handler.ListenAndServe(t.Context(), serve.ListenOptions{Listener: l}) }()
	go func() {
		if conn, err := address.Accept(); err == nil {
			l.accepted <- conn
		}
	}()
	own := *s
	own.url = "http://" + address.Addr().String()
	w := own.watch(inDefault + "?watch=1&resourceVersion=" + from) // it has no initial state to be cut
	s.create("b", 1)
	w.expect("ADDED b")
	failure := errors.New("too many open files")
	l.fail <- failure
	require.ErrorIs(t, <-served, failure)
	_, more := w.next()
	require.False(t, more)
	require.Zero(t, s.handler.Stats().Watches)
}

// What net/http has to say of its connections is among what the server says, and not on the standard
// error of the program.
func TestListen_LogsWhatBefallsConnections(t *testing.T) {
	var lines bytes.Buffer
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = time.Millisecond, time.Millisecond
		c.Logger = slog.New(slog.NewTextHandler(&lines, nil))
	})
	address, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := brokenListener{address, nil, make(chan error, 2)}
	l.fail <- syscall.EMFILE // which passes
	l.fail <- net.ErrClosed
	require.ErrorIs(t, s.handler.ListenAndServe(t.Context(), serve.ListenOptions{Listener: l}), net.ErrClosed)
	require.Contains(t, lines.String(), "too many open files")
}

// A configuration that is chosen for a client, since authorities of clients change, allows what
// the listener's does, and no more.
func TestListen_HardensTheConfigurationOfEachClient(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS() // for its certificate
	certified.Close()
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = time.Millisecond, time.Millisecond
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	at, ended := make(chan net.Addr, 1), make(chan error, 1)
	chosen := &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS10}
	go func() {
		ended <- s.handler.ListenAndServe(ctx, serve.ListenOptions{
			Address: "127.0.0.1:0", Ready: func(a net.Addr) { at <- a },
			TLS: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }},
		})
	}()
	address := (<-at).String()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	require.NoError(t, err)
	require.Equal(t, "h2", conn.ConnectionState().NegotiatedProtocol)
	require.NoError(t, conn.Close())
	_, err = tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	require.ErrorContains(t, err, "protocol version")
	require.Empty(t, chosen.NextProtos, "it is the program's")
	stop()
	require.NoError(t, <-ended)
}
