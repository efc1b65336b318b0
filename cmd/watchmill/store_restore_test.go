package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
)

// Two files of one snapshot have the same revisions, and not the same objects.
func TestStoreRestore_EachFileHasABranchOfItsOwn(t *testing.T) {
	_, snapshot := writeFile(t, "notes")
	branch := func() string {
		restored := filepath.Join(t.TempDir(), "restored.db")
		out, errs, status := command(t.Context(), "store", "restore", snapshot, restored)
		require.Zero(t, status, errs)
		var report checkReport
		checked, errs, status := command(t.Context(), "store", "check", restored)
		require.Zero(t, status, errs)
		require.NoError(t, json.Unmarshal([]byte(checked), &report))
		require.Contains(t, out, ", timeline 1, branch "+report.Branch+", format ")
		return report.Branch
	}
	require.NotEqual(t, branch(), branch())
}

func TestStoreRestore_GoesOnAboveOnANewTimeline(t *testing.T) {
	path, snapshot := writeFile(t, "notes")
	restored := filepath.Join(t.TempDir(), "restored.db")
	out, errs, status := command(t.Context(), "store", "restore", snapshot, restored)
	require.Zero(t, status, errs)
	require.Contains(t, out, "timeline 1")
	require.Contains(t, out, "history from revision 4294967302\n")
	want, _, _ := command(t.Context(), "store", "dump", "--state", path)
	got, _, status := command(t.Context(), "store", "dump", "--state", restored)
	require.Zero(t, status)
	require.Equal(t, want, got)
	_, errs, status = command(t.Context(), "store", "restore", snapshot, restored)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "exist")
}

func TestStoreRestore_NamesTheFlagThatIsWrong(t *testing.T) {
	_, snapshot := writeFile(t, "notes")
	_, errs, status := command(t.Context(), "store", "restore", "--floor=9223372036854775807", snapshot, snapshot+".new")
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "watchmill: invalid configuration: --floor is 9223372036854775807")
	require.NotContains(t, errs, "RestoreOptions")
}

func TestStoreSnapshot_IsOneThatRestoreTakes(t *testing.T) {
	path, taken := writeFile(t, "notes")
	dir := t.TempDir()
	snapshot, restored := filepath.Join(dir, "snapshot"), filepath.Join(dir, "restored.db")
	out, errs, status := command(t.Context(), "store", "snapshot", path, snapshot)
	require.Zero(t, status, errs)
	require.Contains(t, out, "snapshot   "+snapshot+", of ")
	require.Contains(t, out, "timeline 0")
	require.Contains(t, out, "type       notes, at revision 6\n")
	want, err := os.ReadFile(taken)
	require.NoError(t, err)
	got, err := os.ReadFile(snapshot)
	require.NoError(t, err)
	require.Equal(t, want, got, "it is that of a program")
	info, err := os.Stat(snapshot)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "only its owner may read it")
	_, errs, status = command(t.Context(), "store", "restore", snapshot, restored)
	require.Zero(t, status, errs)
	state, _, _ := command(t.Context(), "store", "dump", "--state", path)
	again, _, _ := command(t.Context(), "store", "dump", "--state", restored)
	require.Equal(t, state, again)
}

func TestStoreSnapshot_ReplacesNoFile(t *testing.T) {
	path, _ := writeFile(t, "notes")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	out, errs, status := command(t.Context(), "store", "snapshot", path, path)
	require.Equal(t, exitUsage, status)
	require.Empty(t, out)
	require.Contains(t, errs, "file already exists: move it away first")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A backup whose name is a variable of the shell that is not set is no backup.
func TestStoreSnapshot_NeedsAName(t *testing.T) {
	path, _ := writeFile(t, "notes")
	dir := t.TempDir()
	t.Chdir(dir)
	out, errs, status := command(t.Context(), "store", "snapshot", path, "")
	require.Equal(t, exitUsage, status)
	require.Empty(t, out)
	require.Contains(t, errs, "the name of the file to write is empty; give one")
	require.Empty(t, filetest.Names(t, dir))
}

// Nothing but the snapshot goes into a pipe.
func TestStoreSnapshot_GoesIntoAPipe(t *testing.T) {
	path, taken := writeFile(t, "notes")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	read := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(r) // what was read is compared
		read <- all
	}()
	out, errs, status := command(t.Context(), "store", "snapshot", path, fmt.Sprintf("/dev/fd/%d", w.Fd()))
	require.NoError(t, w.Close())
	require.Zero(t, status, errs)
	require.Empty(t, out)
	want, err := os.ReadFile(taken)
	require.NoError(t, err)
	require.Equal(t, want, <-read)
}

func TestStoreSnapshot_LeavesNothingIfItFails(t *testing.T) {
	path, _ := writeFile(t, "notes")
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, errs, status := command(ctx, "store", "snapshot", path, filepath.Join(dir, "snapshot"))
	require.Equal(t, exitInterrupted, status, errs)
	_, errs, status = command(t.Context(), "store", "snapshot", path, filepath.Join(dir, "none", "snapshot"))
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "no such file")
	_, errs, status = command(t.Context(), "store", "snapshot", path, "/dev/full")
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, "no space left on device")
	require.Empty(t, filetest.Names(t, dir))
}

func TestStoreRestore_LeavesNothingIfItIsInterrupted(t *testing.T) {
	_, snapshot := writeFile(t, "notes")
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, errs, status := command(ctx, "store", "restore", snapshot, filepath.Join(dir, "restored.db"))
	require.Equal(t, exitInterrupted, status)
	require.Empty(t, errs)
	_, errs, status = command(t.Context(), "store", "restore", dir, filepath.Join(dir, "restored.db"))
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "read "+dir+": is a directory", "what cannot be read is named")
	require.Empty(t, filetest.Names(t, dir))
}
