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
	status := whileReading(t, syscall.SIGTERM, "sim", "lint")
	require.Equal(t, syscall.SIGTERM, status.Signal())
}

// The first interrupt ends a replay that still reads its trace.
func TestInterrupt_EndsAReplayThatReadsItsTrace(t *testing.T) {
	status := whileReading(t, syscall.SIGINT, "replay")
	require.True(t, status.Exited())
	require.Equal(t, exitInterrupted, status.ExitStatus())
}

// whileReading runs a command with a file that it goes on reading, sends it a signal, and
// returns how it ended.
func whileReading(t *testing.T, sig syscall.Signal, args ...string) syscall.WaitStatus {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	child := exec.CommandContext(t.Context(), os.Args[0], append(args, pipe)...)
	child.Env = append(os.Environ(), asCommand+"=1")
	require.NoError(t, child.Start())
	hold, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once the command reads it
	require.NoError(t, err)
	defer hold.Close()
	require.NoError(t, child.Process.Signal(sig))
	require.Error(t, child.Wait())
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	return status
}
