package inspect

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server whose listener fails must not look as if it still served.
func TestListenAndServe_ReturnsWhenServingFails(t *testing.T) {
	s, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, s.listener.Close())
	require.ErrorIs(t, s.closeAfter(context.Background()), net.ErrClosed)
	require.ErrorIs(t, s.Close(), net.ErrClosed, "the reason stays")
}

// A stream that is being sent when the server is closed has ended when Close returns.
func TestServer_CloseWaitsForStreams(t *testing.T) {
	stack := make([]byte, 1<<20)
	for range 50 {
		s, err := Listen("127.0.0.1:0")
		require.NoError(t, err)
		stream, err := http.Get(s.URL() + "events")
		require.NoError(t, err)
		_, err = bufio.NewReader(stream.Body).ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.NotContains(t, string(stack[:runtime.Stack(stack, true)]), "inspect.(*handler).stream")
		require.NoError(t, stream.Body.Close())
	}
}

// Shutdown waits for requests that are being served, and an open page is one that does not end by itself.
func TestHandler_StreamsEndWhenTheirServerShutsDown(t *testing.T) {
	server := httptest.NewServer(Handler())
	defer server.Close()
	for range 2 {
		stream, err := http.Get(server.URL + "/events")
		require.NoError(t, err)
		defer stream.Body.Close()
		_, err = bufio.NewReader(stream.Body).ReadString('\n')
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, server.Config.Shutdown(ctx))
}

// Another user of the machine must not take all files that the process may have open, nor compute a state for each
// of thousands of streams.
func TestServer_HasABoundedNumberOfConnections(t *testing.T) {
	s, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	first := make([]byte, 1)
	var streams []net.Conn
	open := func() (net.Conn, error) {
		conn, err := net.Dial("tcp", s.listener.Addr().String())
		require.NoError(t, err)
		_, _ = io.WriteString(conn, "GET "+Path+"events HTTP/1.1\r\nHost: localhost\r\n\r\n") // it may be closed already
		_, err = conn.Read(first)
		return conn, err
	}
	for range maxConnections {
		conn, err := open()
		require.NoError(t, err)
		streams = append(streams, conn)
	}
	for range 10 {
		conn, err := open()
		require.Error(t, err, "it is closed without an answer")
		require.NoError(t, conn.Close())
	}
	require.NoError(t, streams[0].Close())
	for {
		conn, err := open() // once the server has noticed that there is room
		if err == nil {
			streams = append(streams, conn)
			break
		}
		require.NoError(t, conn.Close()) // the server may take thousands of attempts to notice
	}
	for _, conn := range streams[1:] {
		require.NoError(t, conn.Close())
	}
	require.NoError(t, s.Close())
}
