package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/watchmill/watchmill/serve"
)

// streams is a client of HTTP/2 that sends many requests over one connection, and lets the server send no answer:
// its windows are empty.
type streams struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer
	next   uint32       // the number of the next stream
	reset  atomic.Int32 // how many streams the server has broken off
	ended  chan struct{}
}

// openStreams opens a connection on which nothing but headers is read.
func (s *server) openStreams() *streams {
	s.t.Helper()
	conn, err := s.client.Transport.(*http.Transport).DialContext(s.t.Context(), "tcp", "localhost:80")
	require.NoError(s.t, err)
	c := &streams{t: s.t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1, ended: make(chan struct{})}
	go c.read()
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(s.t, err)
	require.NoError(s.t, c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	return c
}

// read takes the frames of the server, until the connection is closed.
func (c *streams) read() {
	defer close(c.ended)
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		if _, is := frame.(*http2.RSTStreamFrame); is {
			c.reset.Add(1)
		}
	}
}

// get sends a request.
func (c *streams) get(path, user string) { c.send("GET", path, user, "") }

// send sends a request, with a body unless that is empty.
func (c *streams) send(method, path, user, body string) {
	c.t.Helper()
	var block bytes.Buffer
	to := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", method}, {":scheme", "http"}, {":authority", "localhost"}, {":path", path}, {"user", user}} {
		require.NoError(c.t, to.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	require.NoError(c.t, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: body == ""}))
	if body != "" {
		require.NoError(c.t, c.framer.WriteData(c.next, true, []byte(body)))
	}
	c.next += 2
	synctest.Wait()
}

func (c *streams) close() {
	require.NoError(c.t, c.conn.Close())
	<-c.ended
}

// Answers that clients of HTTP/2 do not take count as reads, however small they are, until they stall.
func TestUnread_SmallAnswersKeepTheirPlaces(t *testing.T) {
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		s.create("w0", 1)
		c := s.openStreams()
		defer c.close()
		for range 2 {
			c.get(inDefault+"/w0", "a")
		}
		require.Equal(t, 2, s.handler.Stats().InFlight)
		require.Equal(t, 429, s.get("/apis", "User", "a").code, "these are all that one user may have")
		require.Equal(t, 200, s.get("/apis", "User", "b").code)
		time.Sleep(time.Second)
		require.Equal(t, 200, s.get("/apis", "User", "a").code, "one is slow, and makes room")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Zero(t, s.handler.Stats().InFlight+s.handler.Stats().Departing)
		require.EqualValues(t, 2, c.reset.Load())
	}, byHeader(10), func(c *serve.Config) { c.Limits.Reads, c.Limits.ReadsPerUser = 3, 2 })
}

// So do those to requests that have no place, such as of health checks and of users that are not known: there are 400.
// The oldest gives way at once, so that a health check always gets through.
func TestUnread_AnswersWithoutAPlaceAreBounded(t *testing.T) {
	for path, code := range map[string]int{"/livez": 200, "/readyz": 200, "/a//b": 400} {
		inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
			older, newer := s.openStreams(), s.openStreams()
			defer older.close()
			defer newer.close()
			for _, c := range []*streams{older, newer} {
				for range 210 {
					c.get(path, "")
				}
			}
			require.Equal(t, 400, s.handler.Stats().Departing)
			require.EqualValues(t, 20, older.reset.Load())
			require.Equal(t, code, s.get(path).code)
			synctest.Wait()
			require.EqualValues(t, 21, older.reset.Load())
			require.Zero(t, newer.reset.Load())
			require.Zero(t, s.handler.Stats().InFlight)
		}, func(c *serve.Config) { c.Limits.Reads = 3 })
	}
}

// None of them breaks the answer to a write off, after which the client would not know whether it was done.
func TestUnread_AnswersWithoutAPlaceLeaveThoseToWritesAlone(t *testing.T) {
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		c := s.openStreams()
		defer c.close()
		c.send("POST", inDefault, "a", `{"metadata":{"name":"w0"}}`)
		require.Equal(t, 200, s.get(inDefault+"/w0", "User", "b").code)
		require.Equal(t, 1, s.handler.Stats().Departing)
		for range 3 {
			c.get("/livez", "a")
		}
		require.Equal(t, 4, s.handler.Stats().Departing)
		require.Zero(t, c.reset.Load())
	}, byHeader(10), func(c *serve.Config) { c.Limits.Reads = 1 })
}

// A write has no place while its client does not take the answer.
func TestUnread_AnswersToWritesKeepNoOtherFromWriting(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
		large := `{"metadata":{"name":"large","annotations":{"a":"` + strings.Repeat("x", 200_000) + `"}}}`
		resp := s.send(t.Context(), "POST", inDefault, large)
		require.Equal(t, 201, resp.StatusCode)
		synctest.Wait()
		require.Equal(t, 1, s.handler.Stats().Departing)
		s.create("w0", 1)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, string(text), `"name":"large"`)
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Departing+s.handler.Stats().InFlight)
	}, byHeader(1))
}

// That holds for many writes that are answered within a second, too, of which some find no place to depart to: they keep
// their own for no longer.
func TestUnread_ManyAnswersToWritesKeepNoOtherFromWriting(t *testing.T) {
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		c := s.openStreams()
		defer c.close()
		for i := range 3 {
			c.send("POST", inDefault, "a", fmt.Sprintf(`{"metadata":{"name":"w%d"}}`, i))
		}
		require.Equal(t, [2]int{2, 1}, [2]int{s.handler.Stats().InFlightWrites, s.handler.Stats().Departing})
		post := func(name string) int {
			return s.do("POST", inDefault, fmt.Sprintf(`{"metadata":{"name":%q}}`, name), "User", "b").code
		}
		require.Equal(t, 429, post("x"), "each may just be on its way")
		time.Sleep(time.Second)
		require.Equal(t, 201, post("x"))
		synctest.Wait()
		require.EqualValues(t, 1, c.reset.Load())
	}, byHeader(2), func(c *serve.Config) { c.Limits.Reads, c.Limits.WritesPerUser = 1, 2 })
}

// The answer to a request that has panicked is one like any other.
func TestUnread_TheAnswerToAPanicKeepsItsPlace(t *testing.T) {
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		c := s.openStreams()
		defer c.close()
		c.get(inDefault, "a")
		require.Equal(t, 1, s.handler.Stats().InFlight)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Zero(t, s.handler.Stats().InFlight)
		require.EqualValues(t, 1, c.reset.Load())
	}, func(c *serve.Config) {
		c.Authorize = func(context.Context, serve.User, *serve.Request) error { panic("of all users") }
	})
}
