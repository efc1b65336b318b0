package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asCommand is set in the environment of a process that is to be the command instead
// of its tests.
const asCommand = "WATCHMILL_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// names returns what there is in a directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Else a timeout would end the process, and there would be no report.
func TestSIGTERM_StopsARunAsAnInterruptDoes(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		ctx := stoppable(t.Context())
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Signal(sig))
		<-ctx.Done()
	}
}

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
