//go:build unix

package directory

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSync_NeedsADirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Sync(dir))
	require.ErrorIs(t, Sync(filepath.Join(dir, "missing")), fs.ErrNotExist)
}

// The file systems of /proc and /sys refuse it.
func TestSync_TakesARefusalAsDone(t *testing.T) {
	if runtime.GOOS == "linux" {
		require.NoError(t, Sync("/proc"))
	}
	for _, refusal := range []error{syscall.EINVAL, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		require.True(t, isRefusal(&fs.PathError{Op: "sync", Path: "dir", Err: refusal}), "%v", refusal)
	}
	for _, failure := range []error{nil, syscall.EIO, syscall.ENOSPC, syscall.EBADF, syscall.EDQUOT, fs.ErrClosed} {
		require.False(t, isRefusal(failure), "%v", failure)
	}
}
