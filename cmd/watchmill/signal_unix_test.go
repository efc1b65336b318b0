//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A command that has nothing to report is not kept from ending.
func TestSIGTERM_EndsACommandThatDoesNotHearOfIt(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	child := exec.CommandContext(t.Context(), os.Args[0], "sim", "lint", pipe)
	child.Env = append(os.Environ(), asCommand+"=1")
	require.NoError(t, child.Start())
	hold, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once the command reads it
	require.NoError(t, err)
	defer hold.Close()
	require.NoError(t, child.Process.Signal(syscall.SIGTERM))
	require.Error(t, child.Wait())
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGTERM, status.Signal())
}
