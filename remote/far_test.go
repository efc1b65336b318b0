package remote_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
)

// slowConn is the client's end of a connection that carries rate bytes a second to it.
type slowConn struct {
	net.Conn
	rate int
}

func (c slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), 1<<10)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
	return n, err
}

// serveOver serves a store, until stop, over a link of so many bytes a second for each connection. The client is for
// that link.
func serveOver(t *testing.T, rate int, of serve.Provider) (client *http.Client, stop func()) {
	t.Helper()
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{of}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	link, server := pipenet.Listen(), &http.Server{Handler: handler}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(link) }) // which ends with an error in any case
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := link.Dial(ctx)
		return slowConn{conn, rate}, err
	}
	transport := &http.Transport{DialContext: dial, DisableCompression: true}
	return &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		require.NoError(t, server.Close())
		served.Wait()
	}
}

// The origin writes each second, and the link takes longer for the objects than the origin keeps its history, than
// it honours continue tokens, and than a watch waits for its consumer. What is written meanwhile is more than a
// watch reads ahead.
func TestReplica_StartsOverASlowLink(t *testing.T) {
	for name, noHistory := range map[string]bool{"at the oldest state": false, "at the newest state": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { startOverASlowLink(t, noHistory) })
		})
	}
}

func startOverASlowLink(t *testing.T, noHistory bool) {
	origin, err := registry.New(widgets(new(atomic.Int64)))
	require.NoError(t, err)
	for i := range 12_000 {
		_, err := origin.Create(t.Context(), widget(fmt.Sprint("w", i), 1), registry.WriteOptions{})
		require.NoError(t, err)
	}
	client, stop := serveOver(t, 4000, origin)
	busy, idle := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() { writeEachSecond(busy, origin) })

	b := backendAt(t, "http://origin.localhost", func(c *remote.Config) {
		c.Client, c.NoHistory, c.BufferBytes = client, noHistory, 4<<10
	})
	cfg := widgets(new(atomic.Int64))
	cfg.Engine.Backend = b
	replica, err := registry.New(cfg)
	require.NoError(t, err)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	err = replica.Engine().WaitReady(ctx)
	cancel()
	idle()
	writer.Wait()
	if err == nil {
		require.Greater(t, time.Since(began), 15*time.Minute, "of virtual time")
		require.Less(t, time.Since(began), 25*time.Minute, "so the objects were sent twice: in pages, of which the second expired, and at once")
		err = replica.Engine().WaitForRevision(t.Context(), origin.Engine().Revision())
	}
	relists := replica.Engine().Stats().Relists
	require.NoError(t, replica.Close())
	require.NoError(t, b.Close())
	stop()
	require.NoError(t, origin.Close())
	require.NoError(t, err)
	require.Zero(t, relists)
}

// writeEachSecond changes an object each second.
func writeEachSecond(ctx context.Context, s *registry.Store[Widget]) {
	for ctx.Err() == nil {
		_, _, _ = s.Update(ctx, "default/w0", func(old *engine.Object[Widget]) (Widget, error) {
			w := old.Value
			w.Spec.Size++
			return w, nil
		}, registry.WriteOptions{}) // the last one may be in vain
		time.Sleep(time.Second)
	}
}
