package pipenet

import (
	"context"
	"net"
	"sync"
)

// Listener is a listener whose connections are made by its Dial. Its methods are safe for
// concurrent use. Make it with [Listen].
type Listener struct {
	accept chan net.Conn
	closed chan struct{}
	close  sync.Once
}

// Listen returns a listener.
func Listen() *Listener {
	return &Listener{accept: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial returns a client's end of a connection. It waits until the server accepts the other end, and
// fails with [net.ErrClosed] after Close, and with ctx's cause.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	there, here := net.Pipe()
	select {
	case l.accept <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for a Dial, and returns the server's end of its connection, or [net.ErrClosed] after
// Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. Connections stay.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address of this machine.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
