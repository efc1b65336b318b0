//go:build unix

package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// Writes to a file that cannot be written fail for good, and reads go on.
func TestAppend_StopsWhenTheDiskFails(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 10, 10, 100)
	last := f.last
	unwritable, err := os.Open(f.path)
	require.NoError(t, err)
	defer unwritable.Close()
	restore := f.swapDescriptor(unwritable)
	f.stage(journal.Put, "x", "x")
	err = f.commit()
	var failed *journal.FailedError
	require.ErrorAs(t, err, &failed)
	require.True(t, failed.Uncertain)
	require.ErrorIs(t, err, syscall.EBADF)
	require.Equal(t, f.path, failed.Path)
	restore()

	f.stage(journal.Put, "y", "y")
	err = f.commit()
	require.ErrorAs(t, err, &failed, "even when the disk is well again")
	require.False(t, failed.Uncertain)
	require.ErrorIs(t, err, syscall.EBADF, "it says why")
	require.Equal(t, f.path, failed.Path)
	_, err = f.Trim(logName, journal.Budget{})
	require.ErrorIs(t, err, journal.ErrFailed)
	_, err = f.Declare("more", 1)
	require.ErrorIs(t, err, journal.ErrFailed)
	_, err = f.Snapshot(f.ctx, new(bytes.Buffer), time.Minute)
	require.ErrorIs(t, err, journal.ErrFailed, "it might have what the file will not have")
	require.Equal(t, f.states[last], stateAt(t, f.File, last), "what was durable can be read")
	require.NoError(t, f.Close())
	f.open()
	b, err := f.Bounds(logName)
	require.NoError(t, err)
	require.Equal(t, f.states[b.Last], stateAt(t, f.File, b.Last))
	require.NoError(t, f.Close())
}

// A commit that found no space has changed nothing, unless its meta page is in the file all
// the same, or cannot be read: a short write can end behind what the page says.
func TestAppend_IsUncertainIfTheMetaPageMayBeWritten(t *testing.T) {
	noSpace := &os.PathError{Op: "write", Path: "state.db", Err: syscall.ENOSPC}
	for what, harm := range map[string]func(f *fixture) (id int){
		"it is":              func(f *fixture) int { return f.LastCommit() },
		"it cannot be found": func(f *fixture) int { id := f.LastCommit(); require.NoError(f, f.Close()); return id + 1 },
		"it cannot be read":  func(f *fixture) int { id := f.LastCommit(); require.NoError(f, os.Truncate(f.path, 0)); return id + 1 },
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t, journal.Options{})
			f.put("a", "1")
			require.ErrorIs(t, f.Settle(noSpace, f.LastCommit()+1), journal.ErrFull)
			f.put("a", "2")
			var failed *journal.FailedError
			require.ErrorAs(t, f.Settle(noSpace, harm(f)), &failed)
			require.True(t, failed.Uncertain)
		})
	}
}

// No space for the data pages is not a failure; no space that a sync reports is one, since what was
// written before it may be lost.
func TestAppend_IsUncertainIfASyncFindsNoSpace(t *testing.T) {
	none := syscall.ENOSPC
	for _, c := range []struct {
		err       error
		uncertain bool
	}{
		{&os.PathError{Op: "write", Path: "state.db", Err: none}, false},
		{fmt.Errorf("file resize error: truncate state.db: %v", none), false}, // as bbolt has it
		{&os.PathError{Op: "sync", Path: "state.db", Err: none}, true},
		{none, true}, // of fdatasync
		{fmt.Errorf("file sync error: sync state.db: %v", none), true},
	} {
		f := newFixture(t, journal.Options{})
		err := f.Settle(c.err, f.LastCommit()+1)
		var failed *journal.FailedError
		require.Equal(t, c.uncertain, errors.As(err, &failed) && failed.Uncertain, "%v", c.err)
		require.Equal(t, !c.uncertain, errors.Is(err, journal.ErrFull), "%v", c.err)
		if !c.uncertain {
			require.ErrorIs(t, err, none)
		}
	}
}

// A file that is being restored is not open to the caller, and is gone after a failure, so
// the error does not say to close it.
func TestRestore_SaysWhyACommitFailed(t *testing.T) {
	_, snapshot := snapshotted(t)
	path := filepath.Join(t.TempDir(), "restored.db")
	unwritable, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer unwritable.Close()
	all := &fewLooks{t.Context(), 1 << 20, nil}
	_, err = journal.Restore(all, bytes.NewReader(snapshot), path, journal.RestoreOptions{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))

	beforeTheLastCommit := &fewLooks{t.Context(), 1<<20 - all.left - 1, func() error {
		return unix.Dup2(int(unwritable.Fd()), descriptorOf(t, journal.Unfinished(path)))
	}}
	_, err = journal.Restore(beforeTheLastCommit, bytes.NewReader(snapshot), path, journal.RestoreOptions{})
	require.ErrorIs(t, err, syscall.EBADF)
	require.ErrorContains(t, err, "cannot restore to "+path+": ")
	require.NotContains(t, err.Error(), "open it again")
	require.NoFileExists(t, path)
	require.NoFileExists(t, journal.Unfinished(path))
}

// descriptorOf returns the descriptor of a file that this process has open.
func descriptorOf(t *testing.T, path string) int {
	var want, got syscall.Stat_t
	require.NoError(t, syscall.Stat(path, &want))
	for fd := range 1 << 10 {
		if syscall.Fstat(fd, &got) == nil && got.Dev == want.Dev && got.Ino == want.Ino {
			return fd
		}
	}
	require.Fail(t, "it is not open", path)
	return -1
}

// swapDescriptor puts another file under the descriptor of the open one.
func (f *fixture) swapDescriptor(other *os.File) (restore func()) {
	f.Helper()
	fd := f.Descriptor()
	saved, err := syscall.Dup(fd)
	require.NoError(f, err)
	require.NoError(f, unix.Dup2(int(other.Fd()), fd))
	return func() {
		require.NoError(f, unix.Dup2(saved, fd))
		require.NoError(f, syscall.Close(saved))
	}
}
