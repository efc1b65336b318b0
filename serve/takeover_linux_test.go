package serve_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// tellingListener tells of the connections that it accepts.
type tellingListener struct {
	net.Listener
	accepted chan<- *net.TCPConn
}

func (l tellingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- conn.(*net.TCPConn)
	}
	return conn, err
}

// userTimeout returns how long the system lets the other end of a connection acknowledge nothing.
func userTimeout(t *testing.T, conn *net.TCPConn) time.Duration {
	t.Helper()
	socket, err := conn.SyscallConn()
	require.NoError(t, err)
	var limit int
	var failed error
	require.NoError(t, socket.Control(func(fd uintptr) {
		limit, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}))
	require.NoError(t, failed)
	return time.Duration(limit) * time.Millisecond
}

// A client whose host, or network, has gone without a word acknowledges nothing. The little that a quiet watch sends
// fills no buffer, so that no write to it blocks, and the system alone can notice.
func TestTakeover_SystemNoticesAHostThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		stall, limit time.Duration
		encrypted    bool
	}{
		"plain":                           {0, 45 * time.Second, false},
		"encrypted":                       {0, 45 * time.Second, true},
		"with less time for slow clients": {time.Second, 45 * time.Second, false},
		"with more time for slow clients": {time.Hour, time.Hour, false},
		"without an end":                  {1 << 62, (1<<31 - 1) * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(_ *registry.Config[Widget], cfg *serve.Config) {
				cfg.Limits = serve.Limits{ShutdownDelay: 1, DrainWatches: 1, WriteStall: c.stall}
			})
			socket, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			accepted := make(chan *net.TCPConn, 1)
			at := serve.ListenOptions{Listener: tellingListener{socket, accepted}}
			own := *s
			own.url = "http://" + socket.Addr().String()
			if c.encrypted {
				own.client, at.TLS = encryptedHTTP1(t)
				own.url = "https://" + socket.Addr().String()
			}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- s.handler.ListenAndServe(ctx, at) }()
			w := own.watch(inDefault + "?watch=1&resourceVersion=" + s.create("a", 1)) // it has no initial state to be cut
			s.create("b", 1)
			w.expect("ADDED b") // the connection was taken over
			require.Equal(t, c.limit, userTimeout(t, <-accepted))
			stop()
			require.NoError(t, <-served)
		})
	}
}

// encryptedHTTP1 returns a client that speaks HTTP/1.1 over TLS, and the settings of its server.
func encryptedHTTP1(t *testing.T) (*http.Client, *tls.Config) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS() // for its certificate
	certified.Close()
	by := certified.Client().Transport.(*http.Transport).Clone()
	by.TLSClientConfig.NextProtos = []string{"http/1.1"}
	t.Cleanup(by.CloseIdleConnections)
	return &http.Client{Transport: by}, &tls.Config{Certificates: certified.TLS.Certificates}
}
