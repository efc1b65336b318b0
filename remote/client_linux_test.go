package remote_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/watchmill/watchmill/remote"
)

// Nothing is sent over a quiet connection of HTTP/1.1, so that probes of TCP alone tell that it is dead: as soon as
// pings do over HTTP/2.
func TestClient_ProbesItsConnections(t *testing.T) {
	h := httptest.NewServer(http.NotFoundHandler())
	defer h.Close()
	client := remote.NewClient(nil)
	defer client.CloseIdleConnections()
	by := client.Transport.(*http.Transport)
	dial := by.DialContext
	opened := make(chan net.Conn, 1)
	by.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		opened <- conn
		return conn, err
	}
	resp, err := client.Get(h.URL)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body) // the connection stays open
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	socket, err := (<-opened).(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	option := func(level, name int) (value int) {
		require.NoError(t, socket.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, name) }))
		require.NoError(t, err)
		return value
	}
	require.Equal(t, 1, option(unix.SOL_SOCKET, unix.SO_KEEPALIVE))
	quiet, pause, probes := option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
	require.Equal(t, 45*time.Second, time.Duration(quiet+pause*probes)*time.Second)
}
