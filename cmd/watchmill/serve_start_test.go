package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// closing is storage that tells when it is closed.
type closing struct {
	backend.Backend
	closed chan<- struct{}
}

func (c *closing) Close() error {
	defer close(c.closed)
	return c.Backend.Close()
}

// A large file is read for minutes before the server listens. An interrupt ends that, too: a
// supervisor would kill the process else.
func TestServe_IsInterruptedWhileItOpensItsStorage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read, closed := make(chan struct{}), make(chan struct{})
	slow := func(_ context.Context, _, _ string, schema store.Schema) (backend.Backend, error) {
		cancel()
		<-read
		m, err := memory.New(schema, memory.Options{})
		return &closing{m, closed}, err
	}
	err := server.Run(ctx, server.Options{
		CRDs: []string{manifests}, Listen: "127.0.0.1:0", Data: "slow:place", Storages: server.Storages{"slow": slow}, Out: io.Discard, Log: io.Discard,
	})
	require.ErrorIs(t, err, context.Canceled)
	close(read)
	<-closed
}

// The log says what takes so long.
func TestServe_SaysThatItOpensItsFile(t *testing.T) {
	opts := server.Options{Data: "bolt:" + filepath.Join(t.TempDir(), "data")}
	for _, there := range []bool{false, true} {
		log := newServedOutput()
		opts.Log = log
		_, stop := serving(t, opts)
		stop()
		require.Equal(t, there, strings.Contains(log.String(), "opening the file of objects"), log.String())
	}
}
