package transport

import (
	"net"
	"net/netip"
	"sync"
)

// limitedListener is what [Limit] returns.
type limitedListener struct {
	net.Listener
	limit   int
	refused func(from netip.Addr)

	mu   sync.Mutex
	open map[netip.Addr]int
}

// Limit returns a listener that closes the connections of an address which exceed the limit. It
// sends no answer, since the request would have to be read first. It calls refused with the address
// of each.
func Limit(l net.Listener, limit int, refused func(from netip.Addr)) net.Listener {
	return &limitedListener{Listener: l, limit: limit, refused: refused, open: map[netip.Addr]int{}}
}

// Accept returns the next connection that is within the limit.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := addressOf(conn)
		if l.enter(from) {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		_ = conn.Close() // it is refused, so an error does not matter
		l.refused(from)
	}
}

// networkBits is how many bits of an address of IPv6 name a network: a client has all of the addresses in its own.
const networkBits = 64

// addressOf returns the address of a connection without the port, or of IPv6 its network. All
// connections without an IP address count as one address.
func addressOf(conn net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	address := from.Addr().Unmap()
	if address.Is6() && !address.IsLoopback() {
		address = netip.PrefixFrom(address.WithZone(""), networkBits).Masked().Addr()
	}
	return address
}

func (l *limitedListener) enter(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from] >= l.limit {
		return false
	}
	l.open[from]++
	return true
}

func (l *limitedListener) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

// limitedConn counts until it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

// NetConn returns the connection below, as tls.Conn does.
func (c *limitedConn) NetConn() net.Conn { return c.Conn }

func (c *limitedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
