package server

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt"
)

// closer is called when a part of the data is closed.
type closer func() error

func (c closer) Close() error { return c() }

// A server that could not begin takes no file with it that another one has opened since.
func TestData_RemovesANewFileBeforeAnotherProgramCanOpenIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d := &data{log: slog.New(slog.DiscardHandler)}
	require.NoError(t, d.openFile(path))
	d.backends = append(d.backends, closer(func() error {
		other, err := bolt.Open(path, bolt.Options{})
		require.NoError(t, err, "it is another file")
		return other.Close()
	}))
	require.NoError(t, d.close())
	require.FileExists(t, path)
}
