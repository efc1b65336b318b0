package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
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
	slow := func(_ context.Context, _, _ string, schema store.Schema, _ func(error)) (backend.Backend, error) {
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

// What storage says is told with the flag that has named it, unless it names a flag itself.
func TestServe_NamesTheFlagOfStorageThatCannotBeOpened(t *testing.T) {
	for want, problem := range map[string]error{
		"--data: it has no tape":                      errors.New("it has no tape"),
		"invalid configuration: --data is on a shelf": &engine.ConfigError{Field: "--data", Problem: "is on a shelf"},
	} {
		tape := func(context.Context, string, string, store.Schema, func(error)) (backend.Backend, error) {
			return nil, problem
		}
		for _, opts := range []server.Options{{CRDs: []string{manifests}}, {AllowCRDs: true}} {
			opts.Listen, opts.Data, opts.Storages, opts.Out, opts.Log = "127.0.0.1:0", "tape:reel", server.Storages{"tape": tape}, io.Discard, io.Discard
			require.EqualError(t, server.Run(t.Context(), opts), want)
		}
	}
}

// unreadable is storage whose objects cannot be listed.
type unreadable struct{ backend.Backend }

func (unreadable) List(context.Context, backend.ListOptions) (*backend.List, error) {
	return nil, errTorn
}

// A server that cannot see what there is cannot tell whether the kind fits it.
func TestServe_RefusesStorageThatItCannotRead(t *testing.T) {
	tape := func(_ context.Context, _, _ string, schema store.Schema, _ func(error)) (backend.Backend, error) {
		m, err := memory.New(schema, memory.Options{})
		return unreadable{m}, err
	}
	err := server.Run(t.Context(), server.Options{
		CRDs: []string{manifests}, Listen: "127.0.0.1:0", Data: "tape:reel", Storages: server.Storages{"tape": tape}, Out: io.Discard, Log: io.Discard,
	})
	require.EqualError(t, err, "--data: the tape is torn")
}

// A kubeconfig of another program, which has come into being while the storage was opened, stays. A server
// without its own would not be found.
func TestServe_EndsIfItCannotWriteItsKubeconfig(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	slow := func(_ context.Context, _, _ string, schema store.Schema, _ func(error)) (backend.Backend, error) {
		if err := os.WriteFile(config, []byte("mine"), 0o600); err != nil {
			return nil, err
		}
		return memory.New(schema, memory.Options{})
	}
	out := newServedOutput()
	err := server.Run(t.Context(), server.Options{
		CRDs: []string{manifests}, Listen: "127.0.0.1:0", Data: "slow:place", Storages: server.Storages{"slow": slow}, Kubeconfig: config, Out: out, Log: io.Discard,
		Limits: serve.Limits{ShutdownDelay: 1, DrainWatches: 1},
	})
	require.ErrorContains(t, err, "--kubeconfig is "+config+", which exists and was not written by watchmill serve")
	require.Empty(t, out.String())
	left, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, "mine", string(left))
}

// tornTape is storage that cannot be closed.
type tornTape struct{ backend.Backend }

var errTorn = errors.New("the tape is torn")

func (b tornTape) Close() error { return errors.Join(b.Backend.Close(), errTorn) }

// What was not stored must not look as if it was.
func TestServe_EndsWithTheErrorOfItsStorage(t *testing.T) {
	tape := func(_ context.Context, _, _ string, schema store.Schema, _ func(error)) (backend.Backend, error) {
		m, err := memory.New(schema, memory.Options{})
		return tornTape{m}, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := newServedOutput(), make(chan error, 1)
	opts := server.Options{
		CRDs: []string{manifests}, Listen: "127.0.0.1:0", Data: "tape:reel", Storages: server.Storages{"tape": tape}, Out: out, Log: io.Discard,
		Limits: serve.Limits{ShutdownDelay: 1, DrainWatches: 1},
	}
	go func() { ended <- server.Run(ctx, opts) }()
	out.url(t)
	cancel()
	require.ErrorIs(t, <-ended, errTorn)
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

// lostTape is storage that has failed for good.
type lostTape struct{ backend.Backend }

func (lostTape) Failure() error { return errTorn }

// Storage that has failed for good is opened again by a supervisor, which restarts what is not live.
func TestServe_IsNotLiveOnceItsStorageHasFailed(t *testing.T) {
	tape := func(_ context.Context, _, _ string, schema store.Schema, _ func(error)) (backend.Backend, error) {
		m, err := memory.New(schema, memory.Options{})
		return lostTape{m}, err
	}
	log := newServedOutput()
	url, stop := serving(t, server.Options{CRDs: []string{manifests}, Data: "tape:reel", Storages: server.Storages{"tape": tape}, Log: log})
	defer stop()
	for _, path := range []string{"/livez", "/readyz"} {
		code, _ := call(t, "GET", url+path, "", "")
		require.Equal(t, 500, code, path)
	}
	require.Contains(t, log.String(), errTorn.Error())
}
