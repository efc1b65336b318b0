package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// connect returns a client's end of a connection.
func connect(t *testing.T, l *pipenet.Listener) net.Conn {
	t.Helper()
	conn, err := l.Dial(t.Context())
	require.NoError(t, err)
	return conn
}

// hardened serves with the timeouts of Harden, in a bubble of virtual time.
func hardened(t *testing.T, s *server) *pipenet.Listener {
	t.Helper()
	p := pipenet.Listen()
	h := &http.Server{Handler: s.handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	s.handler.Harden(h)
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(p) }()
	t.Cleanup(func() {
		require.NoError(t, h.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return p
}

// status returns the status line of the answer on a connection, "" if it is closed
// without one.
func status(conn io.Reader) string {
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "HTTP/1.1 "))
}

// Headers that do not end are cut off after ten seconds, a connection that is idle
// after two minutes, and others are served meanwhile.
func TestAbuse_SlowHeadersAreCutOff(t *testing.T) {
	s := newServer(t)
	synctest.Test(t, func(t *testing.T) {
		p := hardened(t, s)
		began := time.Now()
		var slow []net.Conn
		for range 100 {
			conn := connect(t, p)
			fmt.Fprint(conn, "GET /apis HTTP/1.1\r\nHost: localhost\r\nX-A: ")
			slow = append(slow, conn)
		}
		for range 9 { // a byte a second does not help
			time.Sleep(time.Second)
			for _, conn := range slow {
				fmt.Fprint(conn, "a")
			}
		}
		other := connect(t, p)
		fmt.Fprint(other, "GET /apis HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answers := bufio.NewReader(other)
		resp, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		for _, conn := range slow {
			_, err := io.Copy(io.Discard, conn)
			require.NoError(t, err)
		}
		require.Equal(t, 10*time.Second, time.Since(began))
		_, err = answers.ReadByte()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 129*time.Second, time.Since(began), "the idle connection")
	})
}

// A body that does not end is cut off after the time of a write, with an answer that says
// so.
func TestAbuse_SlowBodiesAreCutOff(t *testing.T) {
	s := newServer(t)
	synctest.Test(t, func(t *testing.T) {
		p := hardened(t, s)
		began := time.Now()
		slow := connect(t, p)
		fmt.Fprintf(slow, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", inDefault)
		require.Equal(t, "504 Gateway Timeout", status(slow))
		require.Equal(t, 34*time.Second, time.Since(began))
		_, err := slow.Read(make([]byte, 1))
		for err == nil {
			_, err = slow.Read(make([]byte, 1024))
		}
		require.ErrorIs(t, err, io.EOF, "the connection is closed, with what was not sent")
		synctest.Wait()
		require.Zero(t, s.handler.Stats().InFlight+s.handler.Stats().Arriving)
	})
}

// raw sends text as it is, and returns the status line.
func (s *server) raw(text string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(s.t, err)
	defer conn.Close()
	// The server may answer, and close, before it has read everything.
	_, _ = io.WriteString(conn, text)
	return status(conn)
}

func TestAbuse_PathsThatPointElsewhere(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for path, want := range map[string]string{
		inDefault + "/..%2fa": "400", inDefault + "/%2e": "400", inDefault + "/.": "400", inDefault + "/..": "400", inDefault + "/../widgets/a": "400",
		inDefault + "/a%2fstatus": "400", inDefault + "/a%00": "400", inDefault + "/a%5cb": "400", inDefault + "/a%252fb": "400", inDefault + "//a": "400",
		"/apis/example.com/v1/namespaces/%2e%2e/widgets": "400", "/apis/example.com%2fv1/widgets": "400", "//apis": "200",
		"/..;/apis": "404", "/%61pis": "200", inDefault + "/%61": "200", "/metrics/../apis": "400", "*": "404",
	} {
		got := s.raw("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.Equal(t, want, got[:3], path)
	}
}

// Text that another server could take for a second request is not served, and headers
// that only a proxy may set have no effect.
func TestAbuse_SmuggledRequestsAreNotServed(t *testing.T) {
	var mu sync.Mutex
	users := map[string]bool{}
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Audit = func(_ context.Context, e serve.Audited) {
			mu.Lock()
			defer mu.Unlock()
			users[e.User.Name] = true
		}
	})
	smuggled := "POST " + inDefault + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 31\r\n\r\n{\"metadata\":{\"name\":\"smuggled\"}}"
	const head = " HTTP/1.1\r\nHost: localhost\r\n"
	for name, text := range map[string]string{
		"501 length and chunks":           "POST " + inDefault + head + "Content-Length: 5\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + smuggled,
		"400 two lengths":                 "POST " + inDefault + head + "Content-Length: 2\r\nContent-Length: 200\r\n\r\n{}" + smuggled,
		"400 length with a sign":          "POST " + inDefault + head + "Content-Length: +2\r\n\r\n{}" + smuggled,
		"501 unknown coding":              "POST " + inDefault + head + "Transfer-Encoding: xchunked\r\n\r\n" + smuggled,
		"400 space before the colon":      "POST " + inDefault + head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"400 two hosts":                   "GET /apis" + head + "Host: evil.example.com\r\n\r\n",
		"400 no host":                     "GET /apis HTTP/1.1\r\n\r\n",
		"400 a host in the target":        "GET http://evil.example.com/apis HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"400 a line that is not a header": "GET /apis" + head + "X\r\n\r\n",
		"431 headers that are too large":  "GET /apis" + head + "X-A: " + strings.Repeat("a", 2<<20) + "\r\n\r\n",
		"200 what a proxy would say":      "GET /apis" + head + "X-Remote-User: root\r\nX-Forwarded-User: root\r\nX-Forwarded-Host: evil.example.com\r\nConnection: close\r\n\r\n",
	} {
		require.Equal(t, name[:3], s.raw(text)[:3], name)
	}
	require.Equal(t, 404, s.get(inDefault+"/smuggled").code)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]bool{serve.Anonymous.Name: true}, users)
}

// A body that is small on the wire and large once decoded is refused before it takes
// that memory.
func TestAbuse_JSONBombs(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	doubling := `[{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 10_000) + `"}}`
	for range 30 { // each doubles what is there
		doubling += `,{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/b"}`
	}
	operations := "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/spec/size","value":1},`, 10_001), ",") + "]"
	for _, c := range []struct{ name, method, path, body, media, want string }{
		{"deep", "POST", inDefault, deep(1_000_000 / 6), "", "400 BadRequest"},
		{"deep lists", "POST", inDefault, strings.Repeat("[", 1<<20), "", "400 BadRequest"},
		{"deep within a field", "PUT", inDefault + "/a", `{"metadata":{"name":"a"},"spec":` + deep(10_000) + "}", "", "400 BadRequest"},
		{"deep patch", "PATCH", inDefault + "/a", deep(10_000), mergePatch, "400 BadRequest"},
		{"deep value in a patch", "PATCH", inDefault + "/a", `[{"op":"add","path":"/spec/x","value":` + deep(10_000) + "}]", jsonPatch, "400 BadRequest"},
		{"deep options", "DELETE", inDefault + "/a", `{"preconditions":` + deep(100_000) + "}", "", "400 BadRequest"},
		{"doubling copies", "PATCH", inDefault + "/a", doubling + "]", jsonPatch, "422 Invalid"},
		{"operations", "PATCH", inDefault + "/a", operations, jsonPatch, "413 RequestEntityTooLarge"},
		{"a number", "POST", inDefault, `{"metadata":{"name":"b"},"spec":{"size":1e1000000000}}`, "", "400 BadRequest"},
		{"a long number", "POST", inDefault, `{"metadata":{"name":"b"},"spec":{"size":` + strings.Repeat("9", 1<<20) + `}}`, "", "400 BadRequest"},
		{"many fields", "POST", inDefault + "?fieldValidation=Strict", `{"metadata":{"name":"b"},"spec":{` + manyFields(100_000) + `"size":1}}`, "", "400 BadRequest"},
		{"too large", "POST", inDefault, strings.Repeat(" ", 3<<20+1), "", "413 RequestEntityTooLarge"},
		{"no JSON", "POST", inDefault, "\xff\xfe{}", "", "400 BadRequest"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		headers := []string{}
		if c.media != "" {
			headers = []string{"Content-Type", c.media}
		}
		a := s.do(c.method, c.path, c.body, headers...)
		runtime.ReadMemStats(&after)
		require.Equal(t, c.want, fmt.Sprintf("%d %s", a.code, a.str("reason")), "%s: %.300s", c.name, a.body)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20), c.name)
		require.Less(t, len(a.body), 64<<10, "%s: an error does not repeat the body", c.name)
	}
	require.Equal(t, 200, s.get(inDefault+"/a").code)
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"f%d":1,`, i)
	}
	return b.String()
}

// Of 20,000 watches of one user those above the limit are refused, and another user can
// still watch.
func TestAbuse_WatchesOfOneUser(t *testing.T) {
	const allowed = 200
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.WatchesPerUser = allowed
		c.Authenticate = func(r *http.Request) (serve.User, error) { return serve.User{Name: r.Header.Get("User")}, nil }
	})
	for range allowed {
		s.watch(inDefault+"?watch=1", "User", "a")
	}
	before := heap()
	for range 20_000 - allowed {
		w := newDiscard()
		r, err := http.NewRequest("GET", "http://localhost"+inDefault+"?watch=1", nil)
		require.NoError(t, err)
		r.Header.Set("User", "a")
		s.handler.ServeHTTP(w, r)
		require.Equal(t, 429, w.code)
		require.Equal(t, "1", w.header.Get("Retry-After"))
	}
	require.Less(t, heap(), before+(1<<20), "what is refused costs nothing")
	require.Equal(t, allowed, s.handler.Stats().Watches)
	other := s.watch(inDefault+"?watch=1", "User", "b")
	s.create("x", 1)
	other.expect("ADDED x")
}

// heap returns what is reachable, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// discard is a ResponseWriter that keeps the status.
type discard struct {
	header http.Header
	code   int
}

func newDiscard() *discard                     { return &discard{header: http.Header{}} }
func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(code int)        { d.code = code }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// listening runs a server on a port of its own until stop is called, which returns
// what it ended with.
func listening(t *testing.T, s *server) (addr string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- s.handler.ListenAndServe(ctx, serve.ListenOptions{Address: "127.0.0.1:0", Ready: func(a net.Addr) { ready <- a }})
	}()
	return (<-ready).String(), func() error {
		cancel()
		return <-ended
	}
}

func TestAbuse_ConnectionsOfOneAddress(t *testing.T) {
	var log logged
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ConnectionsPerAddress, c.Limits.ShutdownDelay = 3, 1
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	addr, stop := listening(t, s)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		return conn
	}
	var open []net.Conn
	for range 3 {
		conn := dial()
		require.Equal(t, "200 OK", status(conn))
		open = append(open, conn)
	}
	more := dial()
	require.Empty(t, status(more), "it is closed without an answer")
	require.Eventually(t, func() bool { return s.handler.Stats().RefusedConnections == 1 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(log.lines()[0], "address=127.0.0.1 limit=3") }, time.Minute, time.Millisecond)
	require.NoError(t, more.Close())
	require.NoError(t, open[0].Close())
	for got := ""; got == ""; { // until the server has seen that it is closed
		conn := dial()
		got = status(conn)
		open = append(open, conn)
	}
	for _, conn := range open[1:] {
		require.NoError(t, conn.Close())
	}
	require.NoError(t, stop())
}

// A server that shuts down in the middle of all these completes the requests of
// well-behaved clients, and leaves nothing behind: the bubble ends once all goroutines have.
func TestAbuse_ShutdownDuringAllOfIt(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		p := pipenet.Listen()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.handler.ListenAndServe(ctx, serve.ListenOptions{Listener: p}) }()
		by := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) }}
		s.client = &http.Client{Transport: by}
		s.createLarge("large", 200_000)
		for range 20 {
			for _, text := range []string{
				"GET " + inDefault + "?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET " + allWidgets + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
				"GET /apis HTTP/1.1\r\nHost: local", "POST " + inDefault + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
			} {
				conn := connect(t, p) // of which nothing is read
				defer conn.Close()
				_, err := io.WriteString(conn, text)
				require.NoError(t, err)
			}
		}
		good := s.send(t.Context(), "GET", inDefault+"?watch=1", "")
		read, ended := lines(good.Body, 100)
		require.Contains(t, <-read, `"name":"large"`)
		for i := range 30 {
			s.createLarge(fmt.Sprint("w", i), 100_000)
			require.Contains(t, <-read, fmt.Sprintf(`"name":"w%d"`, i))
		}
		stop()
		require.NoError(t, <-served)
		_, more := <-read
		require.False(t, more)
		require.ErrorIs(t, *ended, io.EOF, "it ends cleanly")
		stats := s.handler.Stats()
		require.Zero(t, stats.Watches+stats.InFlight)
		require.NoError(t, good.Body.Close())
		by.CloseIdleConnections()
	}, func(c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
		c.Limits.WriteStall, c.Limits.WriteTimeout = 3*time.Second, 3*time.Second
	})
}

// One address does not use up the files that the process may have open: others get through.
func TestLimits_ConnectionsLeaveDescriptorsForOthers(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 12_000, 1: 1, 64: 48, 1024: 768, 20_000: 12_000, math.MaxUint64: 12_000} {
		require.Equal(t, want, serve.ConnectionsOf(descriptors), descriptors)
	}
}

// Without users all clients are one: it may have all that there may be.
func TestLimits_OfOneUserAreThoseOfAllWithoutUsers(t *testing.T) {
	with, without := serve.LimitsOf(serve.Limits{Watches: 50_000}, true), serve.LimitsOf(serve.Limits{Watches: 50_000}, false)
	require.Equal(t, []int{200, 100, 1000}, []int{with.ReadsPerUser, with.WritesPerUser, with.WatchesPerUser})
	require.Equal(t, []int{400, 200, 50_000}, []int{without.ReadsPerUser, without.WritesPerUser, without.WatchesPerUser})
	require.Equal(t, 7, serve.LimitsOf(serve.Limits{WatchesPerUser: 7}, false).WatchesPerUser)
	for watches, ofUser := range map[int]int{1: 1, 101: 51, 1999: 1000, 2001: 1000} {
		require.Equal(t, ofUser, serve.LimitsOf(serve.Limits{Watches: watches}, true).WatchesPerUser)
		require.Equal(t, watches, serve.LimitsOf(serve.Limits{Watches: watches}, false).WatchesPerUser)
	}
}

// A user has half of however many places there are: a program that wants no limit gives the largest number.
func TestLimits_OfOneUserAreHalfOfTheLargest(t *testing.T) {
	for _, places := range []int{1, 2, 3, math.MaxInt - 1, math.MaxInt} {
		limits := serve.LimitsOf(serve.Limits{Reads: places, Writes: places}, true)
		require.Equal(t, []int{places - places/2, places - places/2}, []int{limits.ReadsPerUser, limits.WritesPerUser})
	}
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		byHeader(math.MaxInt)(c)
		c.Limits.Reads = math.MaxInt
	})
	require.Equal(t, http.StatusOK, s.do("GET", allWidgets, "").code)
}
