package transport

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// LimitUnacknowledged has the system give a TCP connection up when the other end has acknowledged nothing for that
// long of what was sent, or of a probe. Otherwise Linux sends again for a quarter of an hour before it tells that the
// other end is gone. One that is there, and has read nothing for that long with its buffers full, is given up, too. It
// has no effect on other connections.
func LimitUnacknowledged(conn net.Conn, limit time.Duration) {
	socket, err := socketOf(conn)
	if err != nil {
		return
	}
	_ = socket.Control(func(fd uintptr) { // a Unix socket does not have the option
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(min(limit.Milliseconds(), 1<<31-1)))
	})
}

// socketOf returns the socket below a connection, such as one of TLS.
func socketOf(conn net.Conn) (syscall.RawConn, error) {
	for {
		switch c := conn.(type) {
		case syscall.Conn:
			return c.SyscallConn()
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil, syscall.ENOTSOCK
		}
	}
}
