package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// limitFiles has no file of this process grow above a size until the test ends or the function that it
// returns is called, as on a disk that is full.
func limitFiles(t *testing.T, most uint64) (free func()) {
	t.Helper()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	free = func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }
	t.Cleanup(free)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: before.Max}))
	return free
}

// The snapshot before is still there, and no half of another one beside it.
func TestSnapshots_LeaveNoHalfOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	file, err := bolt.Open(filepath.Join(dir, "data"), bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	s := &snapshots{of: file, to: filepath.Join(dir, "snapshot"), log: slog.New(slog.DiscardHandler)}
	require.NoError(t, os.WriteFile(s.to, []byte("before"), 0o600))
	free := limitFiles(t, 100)
	require.ErrorIs(t, s.write(t.Context()), syscall.EFBIG)
	free()
	require.Equal(t, []string{"data", "snapshot"}, filetest.Names(t, dir))
	text, err := os.ReadFile(s.to)
	require.NoError(t, err)
	require.Equal(t, "before", string(text))
	require.Zero(t, s.written.Load())
	require.NoError(t, s.write(t.Context()))
	require.NotZero(t, s.written.Load())
	info, err := os.Stat(s.to)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it has all objects")
}

// Clients go on with the kubeconfig of before.
func TestKubeconfig_IsAsItWasAfterAFullDisk(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "config")
	require.NoError(t, writeKubeconfig(name, "http://127.0.0.1:1", "", nil))
	before, err := os.ReadFile(name)
	require.NoError(t, err)
	free := limitFiles(t, 10)
	err = writeKubeconfig(name, "http://127.0.0.1:2", "", nil)
	free()
	require.ErrorIs(t, err, syscall.EFBIG)
	require.ErrorContains(t, err, "--kubeconfig cannot be written")
	require.Equal(t, []string{"config"}, filetest.Names(t, dir))
	after, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}
