package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store/backend"
)

// deaf is a connection of which, once it is dead, nothing arrives any more, in either direction.
// Neither end is told.
type deaf struct {
	net.Conn
	dead atomic.Bool
}

func (c *deaf) Write(p []byte) (int, error) {
	if c.dead.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Over HTTP/2 all requests share a connection. One that is dead, as after the machine behind an
// address has changed, is noticed, and another one is opened: without that each request would fail
// for as long as the operating system tries to deliver what was sent.
func TestClient_LeavesADeadConnectionOfHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipenet.Listen()
		over := new(http.Protocols)
		over.SetUnencryptedHTTP2(true)
		h := &http.Server{
			Handler:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }),
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: over,
		}
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(p) }()
		client := remote.NewClient(nil)
		by := client.Transport.(*http.Transport)
		by.Protocols = over
		by.IdleConnTimeout = 0 // without TLS a request after it opens a connection that it does not use
		var opened []*deaf
		by.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := p.Dial(ctx)
			if err != nil {
				return nil, err
			}
			opened = append(opened, &deaf{Conn: conn})
			return opened[len(opened)-1], nil
		}
		get := func() error {
			// Until the connection is idle, the next request may open one that it does not use.
			defer synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://origin.localhost/", http.NoBody)
			require.NoError(t, err)
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, resp.Body.Close())
			return err
		}
		require.NoError(t, get())
		opened[0].dead.Store(true)
		began := time.Now()
		for get() != nil {
			require.Less(t, time.Since(began), 2*time.Minute, "requests still fail")
		}
		require.Len(t, opened, 2)
		client.CloseIdleConnections()
		require.NoError(t, opened[0].Conn.Close())
		require.NoError(t, h.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
}

// A connection that is kept for the next request is closed with the backend, or at the end of Kinds.
func TestBackend_LeavesNoConnection(t *testing.T) {
	for name, call := range map[string]func(t *testing.T, url string){
		"a request": func(t *testing.T, url string) {
			b := backendAt(t, url)
			_, err := b.List(t.Context(), backend.ListOptions{})
			require.NoError(t, err)
			require.NoError(t, b.Close())
		},
		"a watch": func(t *testing.T, url string) {
			pauses := make(chan error, 1)
			b := backendAt(t, url, func(c *remote.Config) { c.MaxPause, c.OnError = patience, func(err error) { pauses <- err } })
			_, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
			require.NoError(t, err)
			require.ErrorIs(t, <-pauses, backend.ErrUnavailable)
			require.NoError(t, b.Close())
		},
		"kinds": func(t *testing.T, url string) {
			_, err := remote.Kinds(t.Context(), remote.Config{URL: url})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var opened, watches atomic.Int64
			closed := make(chan struct{}, 10)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("watch") && watches.Add(1) > 1 {
					w.Header().Set("Retry-After", "1000")
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}},"metadata":{"resourceVersion":"5"},"items":[]}`)
			}))
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				switch state {
				case http.StateNew:
					opened.Add(1)
				case http.StateClosed:
					closed <- struct{}{}
				}
			}
			s.Start()
			defer s.Close()
			call(t, s.URL)
			<-closed
			require.Equal(t, int64(1), opened.Load())
		})
	}
}

// closing is a body that is counted as open until it is closed.
type closing struct {
	io.Reader
	open *atomic.Int64
	once sync.Once
}

func (c *closing) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return nil
}

// tracked counts the bodies of answers that are not closed.
func tracked(open *atomic.Int64, answer pretended) pretended {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := answer(r)
		if err == nil {
			open.Add(1)
			resp.Body = &closing{Reader: resp.Body, open: open}
		}
		return resp, err
	}
}

// The body of each answer is closed, even if it has no end.
func TestBackend_ClosesEachAnswer(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusForbidden} {
		var open atomic.Int64
		endless := tracked(&open, func(*http.Request) (*http.Response, error) { return reply(code, spaces{}) })
		b := pretend(t, endless, func(c *remote.Config) { c.MaxListBytes = 1000 })
		for name, call := range calls {
			require.Error(t, call(t.Context(), b), name)
			require.Zero(t, open.Load(), "%s: %d", name, code)
		}
		_, err := remote.Kinds(t.Context(), remote.Config{URL: "http://origin.localhost", Client: &http.Client{Transport: endless}})
		require.Error(t, err)
		require.Zero(t, open.Load(), "kinds: %d", code)
	}
}

// A watch closes each answer before it sends the next request, even if the server keeps the answer open.
func TestWatch_ClosesEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		const failure = `{"type":"ERROR","object":{"kind":"Status","code":500}}` + "\n"
		answer := func(frames string) pretended {
			return func(r *http.Request) (*http.Response, error) {
				if n := open.Load(); n != 0 {
					t.Errorf("%d are open", n)
				}
				return tracked(&open, staying(frames))(r)
			}
		}
		events := watchOf(t, func(*remote.Config) {}, answer(event("ADDED", "a", 6)+failure), answer(failure), answer(gone))
		require.Len(t, events, 1)
		require.Zero(t, open.Load())
	})
}

// When Close has returned, no code of the user's runs any more.
func TestBackend_CloseWaitsForItsGoroutines(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, b *remote.Backend) error{
		"watch": func(ctx context.Context, b *remote.Backend) error {
			_, err := b.Watch(ctx, backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
			return err
		},
		"revision": func(ctx context.Context, b *remote.Backend) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := b.Revision(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				return nil // the request goes on
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				b := pretend(t, func(r *http.Request) (*http.Response, error) {
					if r.URL.Query().Has("watch") {
						return reply(http.StatusOK, until(release))
					}
					<-release
					return nil, errors.New("no network")
				})
				require.NoError(t, call(t.Context(), b))
				closed := make(chan error, 1)
				go func() { closed <- b.Close() }()
				synctest.Wait()
				require.Empty(t, closed)
				close(release)
				require.NoError(t, <-closed)
			})
		})
	}
}

// until is a body that ends with a channel, and not with its request.
type until chan struct{}

func (u until) Read([]byte) (int, error) {
	<-u
	return 0, io.EOF
}

// through is a transport that a program has put in place of the default one, such as one that
// traces.
type through struct{ http.RoundTripper }

// A program may have replaced http.DefaultTransport by one of another type.
func TestNew_WithAnotherDefaultTransport(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = through{before}
	origin := newServer(t)
	origin.create("a", 1)
	o, err := backendAt(t, origin.url).Get(t.Context(), "default/a")
	require.NoError(t, err)
	require.Equal(t, "default/a", o.Key)
}
