package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// calls are those of a backend that send a request.
var calls = map[string]func(context.Context, *remote.Backend) error{
	"get":      func(ctx context.Context, b *remote.Backend) error { _, err := b.Get(ctx, "default/a"); return err },
	"revision": func(ctx context.Context, b *remote.Backend) error { _, err := b.Revision(ctx); return err },
	"list": func(ctx context.Context, b *remote.Backend) error {
		_, err := b.List(ctx, backend.ListOptions{})
		return err
	},
	"page": func(ctx context.Context, b *remote.Backend) error {
		_, err := b.List(ctx, backend.ListOptions{Limit: 5, Continue: "remote:token"})
		return err
	},
	"watch of the newest state": func(ctx context.Context, b *remote.Backend) error {
		_, err := b.Watch(ctx, backend.WatchOptions{NoPrev: true, Notify: func() {}})
		return err
	},
	"state before a watch": func(ctx context.Context, b *remote.Backend) error {
		_, err := b.Watch(ctx, backend.WatchOptions{From: 5, Notify: func() {}})
		return err
	},
	"create": func(ctx context.Context, b *remote.Backend) error {
		_, err := b.ForwardCreate(ctx, "default", []byte(object("a", 1)), registry.WriteOptions{})
		return err
	},
}

// silence is a body that never ends, and fails when its request is given up.
type silence struct{ ctx context.Context }

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// A server that takes a request, and never answers it, or stops in the middle of the
// answer, is given RequestTimeout.
func TestBackend_NoCallWaitsForeverForASilentServer(t *testing.T) {
	servers := map[string]pretended{
		"no answer": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"half an answer": func(r *http.Request) (*http.Response, error) {
			return reply(http.StatusOK, io.MultiReader(strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[`), silence{r.Context()}))
		},
		"half a failure": func(r *http.Request) (*http.Response, error) {
			return reply(http.StatusServiceUnavailable, io.MultiReader(strings.NewReader(`{"kind":"Status",`), silence{r.Context()}))
		},
	}
	for server, answer := range servers {
		for name, call := range calls {
			t.Run(server+" to "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := backendAt(t, "http://origin.localhost", func(c *remote.Config) {
						c.RequestTimeout, c.Client = time.Minute, &http.Client{Transport: answer}
					})
					began := time.Now()
					err := call(t.Context(), b)
					require.ErrorIs(t, err, backend.ErrUnavailable)
					require.Equal(t, name == "create", errors.Is(err, backend.ErrUncertain), "%v", err)
					require.Equal(t, time.Minute, time.Since(began), "of virtual time")
				})
			})
		}
	}
}

// slowList is the answer to a list whose parts each take a while to arrive.
func slowList(ctx context.Context, parts, bytes int, each time.Duration) io.Reader {
	readers := []io.Reader{strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[`)}
	for range parts {
		readers = append(readers, later{ctx, each}, strings.NewReader(strings.Repeat(" ", bytes)))
	}
	return io.MultiReader(append(readers, strings.NewReader("]}"))...)
}

// later is a body that ends after a while, and fails when its request is given up.
type later struct {
	ctx   context.Context
	after time.Duration
}

func (l later) Read([]byte) (int, error) {
	select {
	case <-time.After(l.after):
		return 0, io.EOF
	case <-l.ctx.Done():
		return 0, l.ctx.Err()
	}
}

// A list over a slow link takes as long as it takes. A server that sends next to nothing is left all the same.
func TestList_MayTakeLongerThanARequestIfItArrives(t *testing.T) {
	for name, c := range map[string]struct {
		bytes    int
		arrives  bool
		duration time.Duration
	}{
		"over a slow link": {64 << 10, true, 1000 * time.Second},
		"in crumbs":        {1, false, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := pretend(t, func(r *http.Request) (*http.Response, error) {
					return reply(http.StatusOK, slowList(r.Context(), 100, c.bytes, 10*time.Second))
				})
				began := time.Now()
				list, err := b.List(t.Context(), backend.ListOptions{})
				require.Equal(t, c.duration, time.Since(began), "of virtual time")
				if c.arrives {
					require.NoError(t, err)
					require.EqualValues(t, 7, list.Revision)
					return
				}
				require.ErrorIs(t, err, backend.ErrUnavailable)
			})
		})
	}
}

// chunk is a body that a server sends as one chunk of HTTP/1.1: a Read lasts until all that it has room for has arrived.
type chunk struct {
	body io.Reader
	// rate is how many bytes arrive each second.
	rate int
}

func (c chunk) Read(p []byte) (int, error) {
	n, err := io.ReadFull(c.body, p)
	time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

func TestList_MayTakeLongerThanARequestInOneChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			return reply(http.StatusOK, chunk{slowList(r.Context(), 100, 64<<10, 0), 8 << 10})
		})
		began := time.Now()
		_, err := b.List(t.Context(), backend.ListOptions{})
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), 800*time.Second, "of virtual time")
	})
}

// RequestTimeout may be longer than a watch lasts: then the start of one ends with its time.
func TestWatch_AStartThatTakesLongerThanTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendAt(t, "http://origin.localhost", func(c *remote.Config) {
			c.RequestTimeout, c.WatchTimeout = time.Hour, time.Minute
			c.Client = &http.Client{Transport: pretended(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})}
		})
		_, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
		require.ErrorIs(t, err, backend.ErrUnavailable)
	})
}

// A watch that began, and whose connection then says nothing more, not even that it has
// ended, is given up a while after the server should have ended it.
func TestWatch_AConnectionThatFallsSilentIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		events := watchOf(t, func(c *remote.Config) { c.WatchTimeout = 10 * time.Minute },
			func(r *http.Request) (*http.Response, error) {
				return reply(http.StatusOK, io.MultiReader(strings.NewReader(event("ADDED", "a", 6)+event("MODIFIED", "a", 7)[:50]), silence{r.Context()}))
			},
			sends(event("MODIFIED", "a", 7)+gone),
		)
		require.Len(t, events, 2)
		require.Equal(t, store.Revision(7), events[1].Revision)
		require.GreaterOrEqual(t, time.Since(began), 10*time.Minute, "of virtual time")
		require.Less(t, time.Since(began), 16*time.Minute, "of virtual time")
	})
}

// broken passes on the beginning of an answer, and then breaks the connection.
type broken struct {
	http.ResponseWriter
	left int
}

func (b *broken) Write(p []byte) (int, error) {
	n, err := b.ResponseWriter.Write(p[:min(len(p), b.left)])
	if b.left -= n; n < len(p) || err != nil {
		_ = http.NewResponseController(b.ResponseWriter).Flush() // the connection is given up
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

// A connection that breaks in the middle of a list, or of a page of one, is a failure that
// may pass, and no shorter list; a replica starts in spite of it.
func TestReplica_StartsThroughListsThatBreakOff(t *testing.T) {
	origin := newServer(t)
	const size = 20
	for i := range size {
		origin.create(fmt.Sprintf("w%02d", i), 1)
	}
	var breaks atomic.Int64
	f := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !r.URL.Query().Has("watch") && breaks.Add(-1) >= 0 {
			w = &broken{w, 50}
		}
		next.ServeHTTP(w, r)
	})
	b := backendAt(t, f.URL)
	first, err := b.List(t.Context(), backend.ListOptions{Limit: size / 2})
	require.NoError(t, err)
	for name, call := range map[string]func() error{
		"list": func() error { _, err := b.List(t.Context(), backend.ListOptions{}); return err },
		"page": func() error {
			_, err := b.List(t.Context(), backend.ListOptions{Limit: size / 2, Continue: first.Continue})
			return err
		},
		"state before a watch": func() error {
			_, err := b.Watch(t.Context(), backend.WatchOptions{From: first.Revision, Notify: func() {}})
			return err
		},
	} {
		breaks.Store(1)
		require.ErrorIs(t, call(), backend.ErrUnavailable, name)
	}
	breaks.Store(5)
	e := newServer(t, func(cfg *registry.Config[Widget]) {
		cfg.Engine.Backend = b
		cfg.Engine.Backoff = engine.Backoff{Initial: time.Millisecond, Max: 10 * time.Millisecond}
	}).store.Engine()
	require.NoError(t, e.WaitForRevision(t.Context(), first.Revision))
	require.Len(t, namesOf(t, e), size)
	require.LessOrEqual(t, breaks.Load(), int64(0), "all of them happened")
}
