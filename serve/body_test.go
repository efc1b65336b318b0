package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// promise sends the head of a request that says it has a body of five bytes.
func (s *server) promise(t *testing.T, method, path string) net.Conn {
	t.Helper()
	conn, err := s.client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "localhost:80")
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n", method, path)
	require.NoError(t, err)
	return conn
}

// A read needs no body. One that says it has one, and does not send it, takes the place of no
// other read, and is cut off after the time of a write.
func TestBody_OfAReadThatDoesNotComeHoldsNoPlace(t *testing.T) {
	for _, path := range []string{allWidgets, allWidgets + "?watch=1", "/openapi/v2"} {
		inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
			for i := range 100 { // more than net/http keeps until the handler has ended
				s.create(fmt.Sprintf("w%03d", i), i)
			}
			began := time.Now()
			conn := s.promise(t, "GET", path)
			defer conn.Close()
			synctest.Wait()
			require.Zero(t, s.handler.Stats().InFlight)
			require.Zero(t, s.handler.Stats().Watches)
			require.Equal(t, 200, s.get(allWidgets).code)
			require.Equal(t, "504 Gateway Timeout", status(conn))
			require.Equal(t, 34*time.Second, time.Since(began))
		}, func(c *serve.Config) { c.Limits.Reads, c.Limits.Watches = 1, 1 })
	}
}

// A refusal that is sent before the body was read waits for that no longer than a write may take.
func TestBody_OfARefusedWriteThatDoesNotCome(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		began := time.Now()
		conn := s.promise(t, "PATCH", inDefault+"/"+strings.Repeat("w", 8<<10))
		defer conn.Close()
		_, err := io.Copy(io.Discard, conn)
		require.NoError(t, err)
		require.Equal(t, 34*time.Second, time.Since(began))
		synctest.Wait()
		require.Zero(t, s.handler.Stats().InFlight)
	}, func(c *serve.Config) {
		c.Authorize = func(context.Context, serve.User, *serve.Request) error { return errors.New("no") }
	})
}

// A client that sends Expect: 100-continue, and then does not read the answer, is cut off.
func TestBody_OfAClientThatDoesNotReadContinue(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		conn, err := s.client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "localhost:80")
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", inDefault)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, s.handler.Stats().Arriving)
		time.Sleep(time.Minute)
		require.Equal(t, serve.Stats{Requests: 1}, s.handler.Stats())
	})
}

// Once the body of a watch is there, the time that it could have taken does not end the watch.
func TestBody_OfAWatchDoesNotEndIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		began := time.Now()
		a := s.do("GET", allWidgets+"?watch=1&timeoutSeconds=60", "hello")
		require.Equal(t, 200, a.code)
		require.Equal(t, 60*time.Second, time.Since(began))
	})
}

// A body of a read may be as large as one of a write.
func TestBody_OfAReadThatIsTooLarge(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		require.Equal(t, 200, s.do("GET", allWidgets, strings.Repeat("a", 1<<10)).code)
	}, func(c *serve.Config) { c.Limits.BodyBytes = 1 << 10 })
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		require.Equal(t, 413, s.do("GET", allWidgets, strings.Repeat("a", 2<<10)).code)
	}, func(c *serve.Config) { c.Limits.BodyBytes = 1 << 10 })
}

// A body that is not what its head says is the client's fault: no failure of the server is logged, and the client is
// not told to send the same again.
func TestBody_ThatCannotBeReadIsNotAFailure(t *testing.T) {
	log := new(bytes.Buffer)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	const host = " HTTP/1.1\r\nHost: localhost\r\n"
	for _, text := range []string{
		"POST " + inDefault + host + "Transfer-Encoding: chunked\r\n\r\nno chunk\r\n",
		"POST " + inDefault + host + "Content-Length: 100\r\n\r\n{",
		"GET " + allWidgets + host + "Content-Length: 100\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, text)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, 400, resp.StatusCode, text)
		require.NotContains(t, resp.Header, "Retry-After")
	}
	require.Empty(t, log.String())
}
