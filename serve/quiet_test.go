package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// protocols are those of HTTP over connections that are not encrypted.
var protocols = map[string]func(*http.Protocols){
	"HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
	"HTTP/2.0": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
}

// inBubble runs a test in a bubble of virtual time, with a server that is hardened, once
// over each protocol.
func inBubble(t *testing.T, test func(t *testing.T, s *server), edit ...func(*serve.Config)) {
	for name := range protocols {
		t.Run(name, func(t *testing.T) { inBubbleOver(t, name, test, edit...) })
	}
}

// inBubbleOver is inBubble over one protocol.
func inBubbleOver(t *testing.T, protocol string, test func(t *testing.T, s *server), edit ...func(*serve.Config)) {
	synctest.Test(t, func(t *testing.T) {
		widgets, err := registry.New(widgetConfig())
		require.NoError(t, err)
		defer func() { require.NoError(t, widgets.Close()) }()
		cfg := serve.Config{
			Resources: []serve.Provider{widgets}, Logger: slog.New(slog.DiscardHandler),
			Limits: serve.Limits{ShutdownDelay: time.Second, DrainWatches: time.Second},
		}
		for _, e := range edit {
			e(&cfg)
		}
		handler, err := serve.New(cfg)
		require.NoError(t, err)
		p := pipenet.Listen()
		h := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: new(http.Protocols)}
		protocols[protocol](h.Protocols)
		handler.Harden(h)
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(p) }()
		by := &http.Transport{Protocols: h.Protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) }}
		test(t, &server{t: t, widgets: widgets, handler: handler, url: "http://localhost", client: &http.Client{Transport: by}})
		by.CloseIdleConnections()
		require.NoError(t, h.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
}

// A watch without a timeout of its own ends after half an hour to an hour, so that clients spread
// over the servers again.
func TestWatch_EndsWithinTheHour(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		began := time.Now()
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1", "")
		read, err := lines(resp.Body, 1)
		_, more := <-read
		require.False(t, more)
		require.EqualError(t, *err, "EOF")
		require.NoError(t, resp.Body.Close())
		took := time.Since(began)
		require.True(t, took >= 30*time.Minute && took <= time.Hour, took)
	})
}

// heedless is a kind whose watches start, once they are let, although the server gave them up.
type heedless struct {
	registry.Resource
	began, leave chan struct{}
}

func (h *heedless) Resources() []registry.Resource { return []registry.Resource{h} }

func (h *heedless) Watch(ctx context.Context, opts engine.WatchOptions) (registry.Stream, error) {
	close(h.began)
	<-h.leave
	return h.Resource.Watch(context.WithoutCancel(ctx), opts)
}

// Shutdown waits for a watch that is starting. It has ended those that have started by then, so
// this one ends by itself.
func TestShutdown_EndsAWatchThatStartsAfterAllHaveEnded(t *testing.T) {
	var kind *heedless
	inBubble(t, func(t *testing.T, s *server) {
		answered := make(chan answer, 1)
		go func() { answered <- s.get(inDefault + "?watch=1") }()
		<-kind.began
		stopped := make(chan error, 1)
		go func() { stopped <- s.handler.Shutdown(t.Context()) }()
		time.Sleep(time.Minute)
		require.Empty(t, stopped)
		close(kind.leave)
		synctest.Wait()
		require.Len(t, stopped, 1)
		require.NoError(t, <-stopped)
		<-answered
	}, func(c *serve.Config) {
		kind = &heedless{c.Resources[0].Resources()[0], make(chan struct{}), make(chan struct{})}
		c.Resources = []serve.Provider{kind}
	})
}

// A client whose watch has ended must not come back to this server, which is still ending other watches.
func TestShutdown_RefusesRequestsWhileWatchesEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		for range 2 {
			resp := s.send(t.Context(), "GET", inDefault+"?watch=1", "")
			defer resp.Body.Close()
			lines(resp.Body, 10)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- s.handler.Shutdown(t.Context()) }()
		time.Sleep(900 * time.Millisecond) // in ShutdownDelay, a second
		require.Equal(t, 200, s.get(inDefault).code, "others may not know yet that it is not ready")
		time.Sleep(300 * time.Millisecond) // in DrainWatches, the second in which the watches end
		require.Equal(t, 1, s.handler.Stats().Watches)
		var reused bool
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
		for _, query := range []string{"", "?watch=1"} {
			resp := s.send(ctx, "GET", inDefault+query, "")
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 429, resp.StatusCode)
			require.Contains(t, string(text), "the server is shutting down")
			synctest.Wait()
		}
		require.False(t, reused, "the next connection may be to another server")
		require.NoError(t, <-stopped)
		require.Equal(t, 200, s.get("/livez").code)
	})
}

// A program may exit once Shutdown has returned, so by then each client has been sent the end of its watch.
func TestShutdown_WaitsUntilTheEndOfAWatchIsSent(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1&resourceVersion="+s.create("a", 1), "")
		defer resp.Body.Close()
		stopped := make(chan error, 1)
		go func() { stopped <- s.handler.Shutdown(t.Context()) }()
		time.Sleep(10 * time.Second) // more than its delays, in which the client does not read
		require.Empty(t, stopped)
		_, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, <-stopped)
	})
}

// What a hook writes to is in use until Shutdown returns.
func TestShutdown_WaitsForHooks(t *testing.T) {
	var told, heard chan struct{}
	inBubble(t, func(t *testing.T, s *server) {
		answered := make(chan answer, 1)
		go func() { answered <- s.get(inDefault) }()
		<-told
		stopped := make(chan error, 1)
		go func() { stopped <- s.handler.Shutdown(t.Context()) }()
		time.Sleep(10 * time.Second)
		require.Empty(t, stopped)
		close(heard)
		require.NoError(t, <-stopped)
		require.Equal(t, 200, (<-answered).code)
	}, func(c *serve.Config) {
		told, heard = make(chan struct{}), make(chan struct{})
		c.Audit = func(context.Context, serve.Audited) {
			close(told)
			<-heard
		}
	})
}

// A watch that is authorized only when all have ended does not start any more.
func TestShutdown_RefusesAWatchThatIsStillAuthorized(t *testing.T) {
	var asked, known chan struct{}
	inBubble(t, func(t *testing.T, s *server) {
		answered := make(chan answer, 1)
		go func() { answered <- s.get(inDefault + "?watch=1") }()
		<-asked
		stopped := make(chan error, 1)
		go func() { stopped <- s.handler.Shutdown(t.Context()) }()
		time.Sleep(time.Minute)
		require.Empty(t, stopped)
		close(known)
		require.NoError(t, <-stopped)
		require.Equal(t, 429, (<-answered).code)
	}, func(c *serve.Config) {
		asked, known = make(chan struct{}), make(chan struct{})
		c.Authorize = func(context.Context, serve.User, *serve.Request) error {
			close(asked)
			<-known
			return nil
		}
	})
}

// lines reads an answer as it arrives, since connections in memory have no buffers. The
// channel is closed at the end, and err has what ended it before that.
func lines(from io.Reader, most int) (read <-chan string, err *error) {
	out := make(chan string, most)
	err = new(error)
	go func() {
		defer close(out)
		in := bufio.NewReader(from)
		for {
			line, failed := in.ReadString('\n')
			if line != "" && line != "\n" {
				out <- line
			}
			if failed != nil {
				*err = failed
				return
			}
		}
	}()
	return out, err
}

// A watch without events is not taken for one whose client reads nothing: it lasts, and
// ends cleanly when the server shuts down. No bookmark comes meanwhile: it would set another deadline
// before one that was left behind has passed.
func TestWatch_LastsWithoutEvents(t *testing.T) {
	var silent *registry.Store[Widget]
	inBubble(t, func(t *testing.T, s *server) {
		defer func() { require.NoError(t, silent.Close()) }()
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1&timeoutSeconds=3600", "")
		defer resp.Body.Close()
		read, ended := lines(resp.Body, 100)
		for range 5 {
			time.Sleep(50 * time.Second)
			_, err := silent.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{GenerateName: "w", Namespace: "default"}}, registry.WriteOptions{})
			require.NoError(t, err)
			require.Contains(t, <-read, `{"type":"ADDED"`)
		}
		time.Sleep(50 * time.Second)
		require.NoError(t, s.handler.Shutdown(t.Context()))
		_, more := <-read
		require.False(t, more)
		require.ErrorIs(t, *ended, io.EOF, "it ends cleanly")
	}, func(c *serve.Config) {
		cfg := widgetConfig()
		cfg.Engine.BookmarkPeriod = time.Hour
		var err error
		silent, err = registry.New(cfg)
		require.NoError(t, err)
		c.Resources = []serve.Provider{silent}
	})
}

// A client that reads slowly, but reads, gets all of a list, however long that takes: here over a link of 64 kbit/s.
// WriteStall bounds the time for each part.
func TestList_SlowReaderGetsAll(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 16 << 10}
		for i := range 16 {
			s.createLarge(fmt.Sprint("w", i), 250_000)
		}
		resp := s.send(t.Context(), "GET", inDefault, "")
		defer resp.Body.Close()
		read, err := io.Copy(io.Discard, &slowly{from: resp.Body, part: 8000, pause: time.Second})
		require.NoError(t, err)
		require.Greater(t, read, int64(16*250_000))
	})
}

// A client that reads a burst of events slowly, but reads, gets all of them: a client that reads
// as fast as it can gets little of its own while the server has events for thousands.
func TestWatch_SlowReaderGetsBurst(t *testing.T) {
	const part, total = 16 << 10, 300_000
	inBubble(t, func(t *testing.T, s *server) {
		s.client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: part}
		for _, size := range []int{600, 1500, 7500, 10_000, 60_000} {
			prefix, objects := fmt.Sprintf("of-%d-", size), total/size
			newest, err := s.widgets.Engine().Backend().Revision(t.Context())
			require.NoError(t, err)
			resp := s.send(t.Context(), "GET", inDefault+"?watch=1&timeoutSeconds=3600&resourceVersion="+newest.String(), "")
			for i := range objects {
				s.createLarge(fmt.Sprint(prefix, i), size)
			}
			events := bufio.NewReader(&slowly{from: resp.Body, part: part, pause: 20 * time.Second})
			for i := 0; i < objects; {
				line, err := events.ReadString('\n')
				require.NoError(t, err, "after %d of %d objects of %d bytes", i, objects, size)
				if line != "\n" { // which keeps the connection alive
					require.Contains(t, line, `"name":"`+fmt.Sprint(prefix, i)+`"`)
					i++
				}
			}
			require.NoError(t, resp.Body.Close())
		}
	})
}

// slowly reads a part, and pauses before the next.
type slowly struct {
	from       io.Reader
	part, left int
	pause      time.Duration
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.left == 0 {
		time.Sleep(s.pause)
		s.left = s.part
	}
	n, err := s.from.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// A client that lets the server send one byte, and no more, holds a watch open for
// WriteStall, even if that is the first frame.
func TestWatch_StreamThatTakesNoFrame(t *testing.T) {
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		s.client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1}
		from, err := s.widgets.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "default"}}, registry.WriteOptions{})
		require.NoError(t, err)
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1&timeoutSeconds=1&allowWatchBookmarks=1&resourceVersion="+from.Revision.String(), "")
		defer resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
		synctest.Wait()
		require.Equal(t, 1, s.handler.Stats().Watches)
		time.Sleep(31 * time.Second) // WriteStall, and a second more
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Watches)
	})
}

// The same holds for a client that has read for a while: every frame has its own WriteStall.
func TestWatch_StreamThatTakesNoFrameAnyMore(t *testing.T) {
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		s.client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1}
		create := func() {
			_, err := s.widgets.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{GenerateName: "w", Namespace: "default"}}, registry.WriteOptions{})
			require.NoError(t, err)
		}
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1&timeoutSeconds=3600", "")
		defer resp.Body.Close()
		in := bufio.NewReaderSize(resp.Body, 16)
		for range 5 {
			create()
			line := "\n"
			for line == "\n" { // which keeps the connection alive
				var err error
				line, err = in.ReadString('\n')
				require.NoError(t, err)
			}
			require.Contains(t, line, `{"type":"ADDED"`)
			time.Sleep(29 * time.Second)
		}
		create()
		time.Sleep(29 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, s.handler.Stats().Watches)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Watches)
	})
}
