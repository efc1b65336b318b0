package serve_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// brokenListener accepts no more connections once it is told to fail.
type brokenListener struct {
	net.Listener
	accepted chan net.Conn
	fail     chan error
}

func (l brokenListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case err := <-l.fail:
		return nil, err
	}
}

// The watches that are running end as when the server is stopped, before the call returns.
func TestListen_DrainsIfTheListenerFails(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = time.Millisecond, time.Millisecond
	})
	s.create("a", 1)
	s.cached()
	address, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := brokenListener{address, make(chan net.Conn), make(chan error)}
	served := make(chan error, 1)
	go func() { served <- serve.ServeOn(s.handler, t.Context(), l) }()
	go func() {
		if conn, err := address.Accept(); err == nil {
			l.accepted <- conn
		}
	}()
	own := *s
	own.url = "http://" + address.Addr().String()
	w := own.watch(inDefault + "?watch=1")
	w.expect("ADDED a")
	failure := errors.New("too many open files")
	l.fail <- failure
	require.ErrorIs(t, <-served, failure)
	_, more := w.next()
	require.False(t, more)
	require.Zero(t, s.handler.Stats().Watches)
}
