package transport_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/serve/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// However an answer is written and flushed, the client reads the same bytes.
func TestTaken_AnswerArrivesAsItWasWritten(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		server, client := net.Pipe()
		taken := transport.Take(server, 0, func(error) {})
		got := make(chan []byte)
		go func() {
			body, _ := io.ReadAll(httputil.NewChunkedReader(client))
			got <- body
		}()
		var want bytes.Buffer
		for range 1 + random.IntN(20) {
			piece := make([]byte, random.IntN(40<<10))
			for i := range piece {
				piece[i] = byte(random.Uint32())
			}
			want.Write(piece)
			n, err := taken.Write(piece)
			require.NoError(t, err)
			require.Equal(t, len(piece), n)
			if random.IntN(2) == 0 {
				require.NoError(t, taken.FlushError())
			}
		}
		taken.Finish()
		require.True(t, bytes.Equal(want.Bytes(), <-got), "seed %d", seed)
		taken.Close()
		require.NoError(t, client.Close())
	}
}

// The client's end, and more data than it may send, are told while nothing is written.
func TestTaken_TellsThatTheClientIsGone(t *testing.T) {
	for name, leave := range map[string]func(client net.Conn) error{
		"closed": func(client net.Conn) error { return client.Close() },
		"too much data": func(client net.Conn) error {
			_, err := client.Write(make([]byte, 65<<10))
			if errors.Is(err, io.ErrClosedPipe) {
				err = nil // it is closed before all of it was read
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := net.Pipe()
			gone := make(chan error, 1)
			taken := transport.Take(server, 0, func(err error) {
				gone <- err
				_ = server.Close()
			})
			require.NoError(t, leave(client))
			require.Error(t, <-gone)
			taken.Close()
			require.NoError(t, client.Close())
		})
	}
}

// Data that came with the request counts, too.
func TestTaken_ToleratesSomeDataOfTheClient(t *testing.T) {
	server, client := net.Pipe()
	gone := make(chan error, 1)
	taken := transport.Take(server, 60<<10, func(err error) { gone <- err })
	_, err := client.Write(make([]byte, 4<<10))
	require.NoError(t, err)
	require.Empty(t, gone)
	_, err = client.Write(make([]byte, 1))
	require.NoError(t, err)
	require.ErrorContains(t, <-gone, "more than 64 KiB")
	taken.Close()
	require.NoError(t, client.Close())
}

// After Close nothing calls gone any more, so that what it uses may be freed.
func TestTaken_CloseWaitsUntilTheEndWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		told := false
		taken := transport.Take(server, 0, func(error) {
			time.Sleep(time.Second)
			told = true
		})
		taken.Close()
		require.True(t, told)
		require.NoError(t, client.Close())
	})
}

// A write that fails is told, and fails all that follow.
func TestTaken_FailsOnceAWriteHasFailed(t *testing.T) {
	server, client := net.Pipe()
	gone := make(chan error, 2)
	taken := transport.Take(server, 0, func(err error) { gone <- err })
	require.NoError(t, taken.SetWriteDeadline(time.Unix(1, 0)))
	_, err := taken.Write([]byte("event"))
	require.NoError(t, err, "it is kept")
	require.Error(t, taken.FlushError())
	require.Error(t, <-gone)
	_, err = taken.Write([]byte("event"))
	require.Error(t, err)
	require.NoError(t, client.Close())
	taken.Close()
}

func TestLimit_ClosesWhatOneAddressOpensBeyondIt(t *testing.T) {
	under := &listener{conns: make(chan net.Conn, 8)}
	var refusals []string
	limited := transport.Limit(under, 2, func(from netip.Addr) { refusals = append(refusals, from.String()) })
	open := func(address string) net.Conn {
		server, client := net.Pipe()
		under.conns <- conn{server, address}
		return client
	}
	accept := func() net.Conn {
		c, err := limited.Accept()
		require.NoError(t, err)
		return c
	}
	clients := []net.Conn{open("192.0.2.1:1"), open("192.0.2.1:2"), open("192.0.2.1:3"), open("[::ffff:192.0.2.1]:4"), open("192.0.2.2:1")}
	first, second, other := accept(), accept(), accept()
	require.Equal(t, "192.0.2.2:1", other.RemoteAddr().String())
	require.Equal(t, []string{"192.0.2.1", "192.0.2.1"}, refusals)
	for _, refused := range clients[2:4] {
		_, err := refused.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "which counts once")
	clients = append(clients, open("192.0.2.1:5"), open("192.0.2.1:6"), open("192.0.2.3:1"))
	third, last := accept(), accept()
	require.Equal(t, "192.0.2.1:5", third.RemoteAddr().String())
	require.Equal(t, "192.0.2.3:1", last.RemoteAddr().String())
	require.Equal(t, 3, transport.Addresses(limited))
	for _, c := range append(clients, second, other, third, last) {
		require.NoError(t, c.Close())
	}
	require.Zero(t, transport.Addresses(limited), "an address without connections takes no memory")
	close(under.conns)
	_, err := limited.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// A client of IPv6 has all addresses of its network.
func TestLimit_CountsANetworkOfIPv6AsOneAddress(t *testing.T) {
	under := &listener{conns: make(chan net.Conn, 8)}
	var refusals []string
	limited := transport.Limit(under, 1, func(from netip.Addr) { refusals = append(refusals, from.String()) })
	for _, address := range []string{"[2001:db8:0:2::1]:1", "[2001:db8:0:2:ffff::9]:1", "[2001:db8:0:3::1]:1", "[fe80::1%eth0]:1", "[fe80::2%eth1]:1", "[::1]:1"} {
		server, client := net.Pipe()
		defer client.Close()
		under.conns <- conn{server, address}
	}
	close(under.conns)
	var accepted []string
	for c, err := limited.Accept(); err == nil; c, err = limited.Accept() {
		accepted = append(accepted, c.RemoteAddr().String())
		defer c.Close()
	}
	require.Equal(t, []string{"[2001:db8:0:2::1]:1", "[2001:db8:0:3::1]:1", "[fe80::1%eth0]:1", "[::1]:1"}, accepted)
	require.Equal(t, []string{"2001:db8:0:2::", "fe80::"}, refusals)
}

// listener accepts what comes through a channel.
type listener struct{ conns chan net.Conn }

func (l *listener) Accept() (net.Conn, error) {
	c, open := <-l.conns
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l *listener) Close() error   { return nil }
func (l *listener) Addr() net.Addr { return nil }

// conn is a connection of an address.
type conn struct {
	net.Conn
	address string
}

func (c conn) RemoteAddr() net.Addr { return address(c.address) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func TestStreamGuard_BreaksOffWhatIsNotWrittenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newStream()
		guard := transport.NewStreamGuard(slow)
		for range 3 {
			guard.Begin(time.Minute)
			time.Sleep(59 * time.Second)
		}
		require.Empty(t, slow.deadlines, "each write has its own minute")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, slow.deadlines, 1)
		require.True(t, (<-slow.deadlines).Before(time.Now()))

		left := newStream()
		guard = transport.NewStreamGuard(left)
		guard.Begin(time.Minute)
		guard.Leave()
		time.Sleep(time.Hour)
		require.Empty(t, left.deadlines, "nothing happens to a stream after Leave")
	})
}

// A timer that fires while Leave is called breaks nothing off after it: the stream may be gone.
func TestStreamGuard_LeavesTheStreamAloneAfterLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 1000 {
			s := newStream()
			guard := transport.NewStreamGuard(s)
			guard.Begin(time.Minute)
			time.Sleep(time.Minute)
			guard.Leave()
			before := len(s.deadlines)
			synctest.Wait()
			require.Len(t, s.deadlines, before)
		}
	})
}

// stream records the deadlines of its writes.
type stream struct {
	http.ResponseWriter
	deadlines chan time.Time
}

func newStream() stream { return stream{httptest.NewRecorder(), make(chan time.Time, 8)} }

func (s stream) SetWriteDeadline(at time.Time) error {
	s.deadlines <- at
	return nil
}
