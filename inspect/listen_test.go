package inspect

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"runtime"
	"testing"

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
		require.NotContains(t, string(stack[:runtime.Stack(stack, true)]), "inspect.handler.stream")
		require.NoError(t, stream.Body.Close())
	}
}
