package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

func TestUnwritten_IsWrongUsageUnlessTheDiskIsFull(t *testing.T) {
	require.NoError(t, unwritten("--snapshot", nil))
	for problem, usage := range map[error]bool{syscall.ENOSPC: false, syscall.EDQUOT: false, syscall.EFBIG: false, syscall.EIO: false, fs.ErrNotExist: true, fs.ErrPermission: true} {
		err := unwritten("--snapshot", &fs.PathError{Op: "open", Path: "x", Err: problem})
		require.ErrorContains(t, err, "--snapshot cannot be written: open x: "+problem.Error())
		if usage {
			require.ErrorIs(t, err, engine.ErrConfig)
		} else {
			require.NotErrorIs(t, err, engine.ErrConfig)
		}
	}
}

// The file may have come into being since the server has looked at it.
func TestKubeconfig_OverwritesNoFileOfAnotherProgram(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(name, []byte("mine"), 0o600))
	require.ErrorIs(t, writeKubeconfig(name, "http://127.0.0.1:8080", "", nil), engine.ErrConfig)
	left, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "mine", string(left))
}
