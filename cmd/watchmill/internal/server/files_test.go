package server

import (
	"io/fs"
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
