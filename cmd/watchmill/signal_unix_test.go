//go:build unix

package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
)

// A command that has nothing to report is not kept from ending.
func TestSIGTERM_EndsACommandThatDoesNotHearOfIt(t *testing.T) {
	status := whileReading(t, syscall.SIGTERM, "sim", "lint", thePipe)
	require.Equal(t, syscall.SIGTERM, status.Signal())
}

// The first interrupt ends a replay that still reads its trace.
func TestInterrupt_EndsAReplayThatReadsItsTrace(t *testing.T) {
	status := whileReading(t, syscall.SIGINT, "replay", thePipe)
	require.True(t, status.Exited())
	require.Equal(t, exitInterrupted, status.ExitStatus())
}

// The first interrupt ends a run that still reads its scenario, and a server its manifests.
func TestInterrupt_EndsWhatReadsItsFile(t *testing.T) {
	for _, args := range [][]string{{"sim", "run", thePipe}, {"serve", "--listen", "127.0.0.1:0", "--crd", thePipe}} {
		status := whileReading(t, syscall.SIGINT, args...)
		require.True(t, status.Exited(), args)
		require.Equal(t, exitInterrupted, status.ExitStatus(), args)
	}
}

// The first interrupt ends a restore whose snapshot does not come to its end, and leaves no file.
func TestInterrupt_EndsARestoreThatReadsItsSnapshot(t *testing.T) {
	dir := t.TempDir()
	status := whileReading(t, syscall.SIGINT, "store", "restore", thePipe, filepath.Join(dir, "restored.db"))
	require.True(t, status.Exited())
	require.Equal(t, exitInterrupted, status.ExitStatus())
	require.Empty(t, filetest.Names(t, dir))
}

// A pipe that no program writes to keeps a restore no longer than any other.
func TestInterrupt_EndsARestoreOfAPipeWithoutAWriter(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, errs, status := command(ctx, "store", "restore", pipe, filepath.Join(dir, "restored.db"))
	require.Equal(t, exitInterrupted, status, errs)
	require.Empty(t, filetest.Names(t, dir))
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // which lets the reader end
	require.NoError(t, err)
	require.NoError(t, writer.Close())
}

// thePipe stands for the path of the pipe in the arguments of whileReading.
const thePipe = "PIPE"

// whileReading runs a command with a file that it goes on reading, sends it a signal, and
// returns how it ended.
func whileReading(t *testing.T, sig syscall.Signal, args ...string) syscall.WaitStatus {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	args[slices.Index(args, thePipe)] = pipe
	child := exec.CommandContext(t.Context(), os.Args[0], args...)
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

// A SIGHUP, by which operators have other servers read their files again, does not end this one,
// which needs none.
func TestSIGHUP_LeavesTheServerAsItIs(t *testing.T) {
	// The server inherits that a SIGHUP is ignored, as under nohup, but not that it is handled.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	defer signal.Stop(handled)
	p := startServer(t)
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	code, _ := call(t, "POST", p.url+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code)
	http.DefaultClient.CloseIdleConnections()
	require.Contains(t, p.terminate(t), "a SIGHUP changes nothing")
}

// Under nohup a server does not even tell of a SIGHUP.
func TestSIGHUP_StaysIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	p := startServer(t)
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	require.NotContains(t, p.terminate(t), "SIGHUP changes")
}

// A pipe that no program reads keeps a snapshot no longer than any other.
func TestInterrupt_EndsASnapshotIntoAPipeWithoutAReader(t *testing.T) {
	path, _ := writeFile(t, "notes")
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, errs, status := command(ctx, "store", "snapshot", path, pipe)
	require.Equal(t, exitInterrupted, status)
	require.Empty(t, errs)
	reader, err := os.Open(pipe) // so that the goroutine that opens it ends
	require.NoError(t, err)
	require.NoError(t, reader.Close())
}

// A pipe that no program reads keeps a run that is to write its report there no longer than any other.
func TestInterrupt_EndsARunWhoseReportGoesIntoAPipeWithoutAReader(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err := (&simRunCommand{JSON: help.Given(pipe)}).create(ctx)
	require.ErrorIs(t, err, context.Canceled)
	reader, err := os.Open(pipe) // so that the goroutine that opens it ends
	require.NoError(t, err)
	require.NoError(t, reader.Close())
}

// Files do not depend on the reader of the report: a page is not lost with a pager that ends.
func TestClosedPipe_LosesNoFile(t *testing.T) {
	dir := t.TempDir()
	state, page := filepath.Join(dir, "state"), filepath.Join(dir, "page")
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"replay", "--watchers=3", "--state", state, shipped + ".ndjson.gz"}, -1}, // the signal has ended it
		{[]string{"sim", "run", "--html", page, written(t, quick)}, exitFailed},
		{[]string{"sim", "explore", "--seeds=1"}, exitFailed},
	} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		child := exec.CommandContext(t.Context(), os.Args[0], c.args...)
		child.Env, child.Stdout = append(os.Environ(), asCommand+"=1"), w
		require.Error(t, child.Run())
		require.NoError(t, w.Close())
		require.Equal(t, c.status, child.ProcessState.ExitCode(), c.args)
	}
	require.Equal(t, []string{"page", "state"}, filetest.Names(t, dir))
}

// An interrupt of a server and of tee, which writes its log to a file, ends tee first. The server drains all the same.
func TestClosedPipe_LetsAServerDrain(t *testing.T) {
	reader, log, err := os.Pipe()
	require.NoError(t, err)
	server := exec.CommandContext(t.Context(), os.Args[0], "serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--shutdown-delay", "0s", "--drain-watches", "0s")
	server.Env, server.Stderr = append(os.Environ(), asCommand+"=1"), log
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	require.NoError(t, log.Close())
	_, err = out.Read(make([]byte, 1)) // so that it serves
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	require.NoError(t, server.Process.Signal(syscall.SIGTERM)) // which the log has a line about
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, server.Wait())
}
