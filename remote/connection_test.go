package remote_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/remote"
)

// deaf is a connection of which, once it is dead, nothing arrives any more, in either direction.
// Neither end is told.
type deaf struct {
	net.Conn
	dead atomic.Bool
}

func (c *deaf) Write(p []byte) (int, error) {
	if c.dead.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Over HTTP/2 all requests share a connection. One that is dead, as after the machine behind an
// address has changed, is noticed, and another one is opened: without that each request would fail
// for as long as the operating system tries to deliver what was sent.
func TestClient_LeavesADeadConnectionOfHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipenet.Listen()
		over := new(http.Protocols)
		over.SetUnencryptedHTTP2(true)
		h := &http.Server{
			Handler:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }),
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: over,
		}
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(p) }()
		client := remote.NewClient()
		by := client.Transport.(*http.Transport)
		by.Protocols = over
		var opened []*deaf
		by.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := p.Dial(ctx)
			if err != nil {
				return nil, err
			}
			opened = append(opened, &deaf{Conn: conn})
			return opened[len(opened)-1], nil
		}
		get := func() error {
			// Until the connection is idle, the next request may open one that it does not use.
			defer synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://origin.localhost/", http.NoBody)
			require.NoError(t, err)
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, resp.Body.Close())
			return err
		}
		require.NoError(t, get())
		opened[0].dead.Store(true)
		began := time.Now()
		for get() != nil {
			require.Less(t, time.Since(began), 2*time.Minute, "requests still fail")
		}
		require.Len(t, opened, 2)
		client.CloseIdleConnections()
		require.NoError(t, opened[0].Conn.Close())
		require.NoError(t, h.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
}

// through is a transport that a program has put in place of the default one, such as one that
// traces.
type through struct{ http.RoundTripper }

// A program may have replaced http.DefaultTransport by one of another type.
func TestNew_WithAnotherDefaultTransport(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = through{before}
	origin := newServer(t)
	origin.create("a", 1)
	o, err := backendAt(t, origin.url).Get(t.Context(), "default/a")
	require.NoError(t, err)
	require.Equal(t, "default/a", o.Key)
}
