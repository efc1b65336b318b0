package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// behind serves s behind a middleware, which has net/http keep the connections of
// watches. The returned server has another address, and is s otherwise.
func behind(t *testing.T, s *server) *server {
	t.Helper()
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }))
	s.handler.Harden(h.Config)
	h.Start()
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	kept := *s
	kept.url, kept.client = h.URL, h.Client()
	return &kept
}

// A watch says that its connection is closed after it, unless a middleware has to see the
// request end; then the connection serves the next request.
func TestTakeover_OnlyWhereNothingElseServesTheRequest(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	s.cached()
	taken, kept := s.watch(inDefault+"?watch=1&allowWatchBookmarks=1"), behind(t, s).watch(inDefault+"?watch=1&allowWatchBookmarks=1")
	require.True(t, taken.resp.Close)
	require.False(t, kept.resp.Close)
	for _, w := range []*watch{taken, kept} {
		require.Equal(t, []string{"chunked"}, w.resp.TransferEncoding)
		w.expect("ADDED a", "BOOKMARK <nil>") // the state is complete
	}
	require.NoError(t, s.widgets.Close())
	for _, w := range []*watch{taken, kept} {
		_, more := w.change()
		require.False(t, more, "it ends cleanly")
	}
}

// Frames arrive as they are, whatever their size: smaller than a chunk, as large, or
// larger than several.
func TestTakeover_FramesOfAnySize(t *testing.T) {
	s := newServer(t)
	w, same := s.watch(inDefault+"?watch=1"), behind(t, s).watch(inDefault+"?watch=1")
	for i, size := range []int{1, 900, 1100, 15_000, 16_100, 16_101, 16_102, 16_384, 32_768, 100_000, 250_000} {
		s.createLarge(fmt.Sprint("w", i), size)
		got, ok := w.next()
		require.True(t, ok)
		want, ok := same.next()
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Len(t, got.str("metadata.annotations.a"), size)
	}
}

// rawWatch watches on a connection of its own, and returns it when the answer has begun.
func rawWatch(t *testing.T, s *server, after string) (net.Conn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n%s", inDefault, after)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	return conn, resp
}

// Chunks are unknown to HTTP/1.0, which some proxies speak: its answer is the events alone, until
// the connection ends.
func TestTakeover_NotOfHTTP10(t *testing.T) {
	s := newServer(t)
	from := s.create("a", 1)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s?watch=1&resourceVersion=%s HTTP/1.0\r\nHost: localhost\r\n\r\n", inDefault, from)
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	var whole strings.Builder
	for !strings.HasSuffix(whole.String(), "\r\n\r\n") {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		whole.WriteString(line)
	}
	header := whole.String()
	require.Contains(t, header, "HTTP/1.0 200 OK")
	require.NotContains(t, header, "chunked")
	s.create("b", 1)
	event, err := in.ReadString('}')
	require.NoError(t, err)
	require.NoError(t, s.widgets.Close()) // which ends the watch
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Regexp(t, `^\n*{"type":"ADDED","object":{.*}}\n*$`, event+string(rest))
}

// What a client sends during a watch is not served: a little has no consequence, and one
// that goes on is cut off.
func TestTakeover_ClientThatSendsMore(t *testing.T) {
	ended := make(chan error, 1)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Audit = func(_ context.Context, e serve.Audited) {
			if e.Request.Verb == "watch" {
				ended <- e.End
			}
		}
	})
	const another = "DELETE " + inDefault + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
	conn, resp := rawWatch(t, s, another)
	_, err := io.WriteString(conn, another)
	require.NoError(t, err)
	s.create("a", 1)
	in := &watch{t, resp, bufio.NewReader(resp.Body)}
	in.expect("ADDED a")
	require.Equal(t, 200, s.get(inDefault+"/a").code, "it is not deleted")
	for err == nil { // until the server has closed the connection
		_, err = io.WriteString(conn, another)
	}
	require.ErrorContains(t, <-ended, "more than 64 KiB")
}

// A client that closes its connection ends its watch, also behind a middleware.
func TestTakeover_ClientThatLeaves(t *testing.T) {
	ended := make(chan error, 1)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Audit = func(_ context.Context, e serve.Audited) { ended <- e.End }
	})
	for _, one := range []*server{s, behind(t, s)} {
		conn, _ := rawWatch(t, one, "")
		require.NoError(t, conn.Close())
		require.Error(t, <-ended)
		require.Zero(t, s.handler.Stats().Watches)
	}
}

// A panic in the code of the kind ends the watch without the end of the answer, so that the
// client does not take it for complete, and the server goes on.
func TestTakeover_PanicCutsTheAnswerOff(t *testing.T) {
	ended := make(chan error, 2)
	s := newFaulty(t, func(context.Context) error { panic("boom") }, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
		c.Audit = func(_ context.Context, e serve.Audited) { ended <- e.End }
	})
	for _, one := range []*server{s, behind(t, s)} {
		_, err := io.ReadAll(one.watch(gadgets + "?watch=1").in)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, <-ended, "cut off")
	}
	require.NoError(t, s.handler.Shutdown(t.Context()), "nothing is left")
}

// panickingHandler is a handler of log lines that has no place left for them.
type panickingHandler struct{ slog.Handler }

func (panickingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("disk full") }

// A panic of the hook that is called last does not cut the answer off, nor does one of the
// logger that is told of it.
func TestTakeover_PanicOfAHook(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Logger = slog.New(panickingHandler{slog.DiscardHandler})
		c.Audit = func(_ context.Context, e serve.Audited) {
			if e.Request.Verb == "watch" {
				panic("no record")
			}
		}
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
	})
	_, resp := rawWatch(t, s, "")
	require.NoError(t, s.widgets.Close())
	_, err := io.ReadAll(resp.Body)
	require.NoError(t, err, "it ends cleanly")
	require.NoError(t, s.handler.Shutdown(t.Context()), "nothing is left")
}

// A watch ends cleanly with the context of its http.Server, or of its connection, as it does
// where net/http serves it.
func TestTakeover_EndsWithTheServersContext(t *testing.T) {
	for name, of := range map[string]struct {
		configure func(h *http.Server, ctx context.Context)
		takesOver bool
	}{
		"server": {func(h *http.Server, ctx context.Context) {
			h.BaseContext = func(net.Listener) context.Context { return ctx }
		}, true},
		"connection": {func(h *http.Server, ctx context.Context) {
			h.ConnContext = func(base context.Context, _ net.Conn) context.Context {
				own, cancel := context.WithCancel(base)
				context.AfterFunc(ctx, cancel)
				return own
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			h := httptest.NewUnstartedServer(s.handler)
			of.configure(h.Config, ctx)
			s.handler.Harden(h.Config)
			h.Start()
			defer h.Close()
			one := *s
			one.url, one.client = h.URL, h.Client()
			w := one.watch(inDefault + "?watch=1")
			require.Equal(t, of.takesOver, w.resp.Close)
			s.create("a", 1)
			w.expect("ADDED a")
			cancel()
			_, more := w.next()
			require.False(t, more, "it ends cleanly")
		})
	}
}

// base is the context of an http.Server. It counts the functions that wait for its end.
type base struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int32
}

func (b *base) Done() <-chan struct{} { return b.done }

func (b *base) AfterFunc(func()) (stop func() bool) {
	b.waiting.Add(1)
	return func() bool {
		b.waiting.Add(-1)
		return true
	}
}

// The server's context lasts as long as the server, so a watch that is over must leave nothing in it.
func TestTakeover_LeavesNothingInTheServersContext(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	of := &base{Context: context.Background(), done: make(chan struct{})}
	h := httptest.NewUnstartedServer(s.handler)
	h.Config.BaseContext = func(net.Listener) context.Context { return of }
	s.handler.Harden(h.Config)
	h.Start()
	defer h.Close()
	one := *s
	one.url, one.client = h.URL, h.Client()
	w := one.watch(inDefault + "?watch=1")
	w.expect("ADDED a")
	require.Equal(t, int32(1), of.waiting.Load())
	require.NoError(t, w.resp.Body.Close())
	require.Eventually(t, func() bool { return s.handler.Stats().Watches == 0 }, time.Minute, time.Millisecond)
	require.Zero(t, of.waiting.Load())
}

// holding are metrics that hold watches back at their beginning.
type holding struct {
	*recorder
	held, begin chan struct{}
}

func (h holding) Watching(on serve.Endpoint) serve.WatchMetrics {
	close(h.held)
	<-h.begin
	return h.recorder.Watching(on)
}

// A client that leaves before the watch has taken its connection over is gone as any other:
// it is not told of an error.
func TestTakeover_ClientThatLeavesBefore(t *testing.T) {
	told := holding{newRecorder(), make(chan struct{}), make(chan struct{})}
	asked, ended := make(chan context.Context, 1), make(chan error, 1)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Metrics = told
		c.Authorize = func(ctx context.Context, _ serve.User, _ *serve.Request) error {
			asked <- ctx
			return nil
		}
		c.Audit = func(_ context.Context, e serve.Audited) { ended <- e.End }
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "GET %s?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", inDefault)
	require.NoError(t, err)
	request := <-asked
	<-told.held
	require.NoError(t, conn.Close())
	<-request.Done()
	close(told.begin)
	require.ErrorContains(t, <-ended, "the client is gone")
	told.await(t, func() bool { return told.open == 0 && len(told.served) == 1 })
	require.Empty(t, told.sizes)
}
