package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
)

// fileLimit in the environment of a process that is to be the command is the size in bytes at
// which its files cannot grow, as on a full disk.
const fileLimit = "WATCHMILL_TEST_FILE_LIMIT"

func init() {
	most, err := strconv.ParseUint(os.Getenv(fileLimit), 10, 64)
	if err != nil {
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		panic(err)
	}
}

// onFullDisk runs a command whose files can have that many bytes.
func onFullDisk(t *testing.T, most int, args ...string) (errs string, status int) {
	t.Helper()
	var stderr bytes.Buffer
	child := exec.CommandContext(t.Context(), os.Args[0], args...)
	child.Env, child.Stderr = append(os.Environ(), asCommand+"=1", fileLimit+"="+strconv.Itoa(most)), &stderr
	require.Error(t, child.Run())
	return stderr.String(), child.ProcessState.ExitCode()
}

// Checkpoints that cannot be written whole leave no file beside those that there are.
func TestReplay_LeavesNoHalfOfItsCheckpointsOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	const enoughForStorage = 200_000
	errs, status := onFullDisk(t, enoughForStorage, "replay", "--watchers=2000", "--backend=bolt:"+filepath.Join(t.TempDir(), "db"), "--checkpoints", filepath.Join(dir, "saved"), shipped+".ndjson.gz")
	require.Equal(t, exitFailed, status, errs)
	require.Contains(t, errs, "watchmill: cannot save where the replay stands: write "+filepath.Join(dir, "saved.new")+": "+syscall.EFBIG.Error())
	require.Empty(t, filetest.Names(t, dir))
}

// The state of the replay before is not half replaced.
func TestReplay_LeavesTheStateThatThereIsOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	require.NoError(t, os.WriteFile(state, []byte("before"), 0o600))
	errs, status := onFullDisk(t, 100, "replay", "--watchers=1", "--state", state, shipped+".ndjson.gz")
	require.Equal(t, exitFailed, status, errs)
	require.Contains(t, errs, "write "+state+": "+syscall.EFBIG.Error())
	require.Equal(t, []string{"state"}, filetest.Names(t, dir))
	content, err := os.ReadFile(state)
	require.NoError(t, err)
	require.Equal(t, "before", string(content))
}

// A report that cannot be written leaves no file, and the error names the file that was given.
func TestSimRun_LeavesNoHalfOfItsReportOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	errs, status := onFullDisk(t, 100, "sim", "run", "--html", page, written(t, quick))
	require.Equal(t, exitFailed, status, errs)
	require.Contains(t, errs, "watchmill: writing the report: write "+page+": "+syscall.EFBIG.Error())
	require.Empty(t, filetest.Names(t, dir))
}

// Half a kubeconfig would be taken for a file of the user's the next time.
func TestServe_LeavesTheKubeconfigThatThereIsOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	const before = "# Written by watchmill serve.\nof the last time"
	require.NoError(t, os.WriteFile(config, []byte(before), 0o600))
	errs, status := onFullDisk(t, 100, "serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--kubeconfig", config)
	require.Equal(t, exitFailed, status, errs)
	require.Contains(t, errs, "--kubeconfig cannot be written: write "+config+": "+syscall.EFBIG.Error())
	require.Equal(t, []string{"config"}, filetest.Names(t, dir))
	left, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, before, string(left))
}

// A supervisor restarts what a full disk has ended, and not what was called wrongly.
func TestComplain_AFullDiskIsNoWrongUsage(t *testing.T) {
	for _, of := range []error{errOutput, objectfile.ErrUnusable, errReports} {
		require.Equal(t, exitFailed, complain(io.Discard, fmt.Errorf("%w: %w", of, &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOSPC})))
		require.Equal(t, exitUsage, complain(io.Discard, fmt.Errorf("%w: %w", of, fs.ErrNotExist)))
	}
}

// A full disk is no wrong usage.
func TestStore_OnAFullDiskExitsWithOneAndLeavesNothing(t *testing.T) {
	path, snapshot := writeFile(t, "notes")
	made := filepath.Join(t.TempDir(), "made")
	for _, arguments := range [][]string{{"restore", snapshot, made}, {"snapshot", path, made}} {
		errs, status := onFullDisk(t, 1000, append([]string{"store"}, arguments...)...)
		require.Equal(t, exitFailed, status, "%v: %s", arguments, errs)
		require.Contains(t, errs, syscall.EFBIG.Error())
	}
	require.Empty(t, filetest.Names(t, filepath.Dir(made)))
}
