package server

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// hanging is storage whose Close waits for a disk.
type hanging struct {
	backend.Backend
	disk chan struct{}
}

func (h hanging) Close() error {
	<-h.disk
	return h.Backend.Close()
}

func TestDefinitions_ThatAreListedAgainAreServedAllTheSame(t *testing.T) {
	for err, want := range map[error]string{
		&informer.SourceError{Err: engine.ErrExpired}:                   "level=WARN msg=\"the watch of the definitions has ended, and they are listed again\"",
		&informer.SourceError{Err: engine.ErrEngineClosed, Final: true}: "level=ERROR msg=\"a definition is not served\"",
		&controller.ReconcileError{Err: engine.ErrEngineClosed}:         "level=ERROR msg=\"a definition is not served\"",
	} {
		var out bytes.Buffer
		logControllerError(slog.New(slog.NewTextHandler(&out, nil)), "definitions", "a definition is not served", err)
		require.Contains(t, out.String(), want)
	}
}

func TestDefinitions_WhoseStorageHangsKeepNoProcessFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		disk := make(chan struct{})
		defined, err := apiextensions.New(t.Context(), apiextensions.Config{Host: host, Storage: func(_ context.Context, _ string, schema store.Schema) (backend.Backend, error) {
			objects, err := memory.New(schema, memory.Options{})
			return hanging{objects, disk}, err
		}})
		require.NoError(t, err)
		d := &definitions{defined}
		require.ErrorContains(t, d.closeSoon(), "has not closed within 10s")
		close(disk)
		require.NoError(t, d.closeSoon())
		require.NoError(t, host.Close())
	})
}
