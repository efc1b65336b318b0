//go:build unix && !solaris && !aix

package journal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// A named pipe is refused: opening it would wait until a writer comes.
func TestOpen_RefusesANamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	for _, opts := range []journal.Options{{}, {ReadOnly: true}} {
		_, err := journal.Open(path, opts)
		require.ErrorContains(t, err, path+": it is not a regular file")
	}
	_, err := journal.Check(path, 0)
	require.ErrorContains(t, err, "not a regular file")
}

// A file may have the longest name that there is, though another is made beside it.
func TestOpen_TakesTheLongestNames(t *testing.T) {
	dir, seen := t.TempDir(), map[string]bool{}
	for _, name := range []string{strings.Repeat("a", 234), strings.Repeat("a", 235), strings.Repeat("a", 254) + "b", strings.Repeat("a", 254) + "c", strings.Repeat("ä", 127)} {
		path := filepath.Join(dir, name)
		f, err := journal.Open(path, journal.Options{})
		require.NoError(t, err, len(name))
		require.NoError(t, f.Close())
		besides := filepath.Base(journal.Unfinished(path))
		require.False(t, seen[besides], "each file has its own beside it")
		require.True(t, utf8.ValidString(besides))
		seen[besides] = true

		require.NoError(t, os.WriteFile(journal.Unfinished(path), nil, 0o600), "as after a crash")
		f, err = journal.Open(path, journal.Options{})
		require.NoError(t, err, len(name))
		require.NoError(t, f.Close())
		require.NoFileExists(t, journal.Unfinished(path))
	}
	_, err := journal.Open(filepath.Join(dir, strings.Repeat("a", 256)), journal.Options{})
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
}

// The file belongs to the program that reads it, even if another user has it shrunk.
func TestShrink_KeepsTheOwner(t *testing.T) {
	f, _ := newMostlyFree(t)
	require.NoError(t, f.Close())
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 { // which alone may give files away
		uid, gid = 12345, 54321
	}
	require.NoError(t, os.Chown(f.path, uid, gid))
	before, after, err := journal.Shrink(t.Context(), f.path, 0)
	require.NoError(t, err)
	require.Less(t, after, before)
	var there syscall.Stat_t
	require.NoError(t, syscall.Stat(f.path, &there))
	require.Equal(t, []int{uid, gid}, []int{int(there.Uid), int(there.Gid)})
}

func TestOpen_SaysWhatToDoOnAFileSystemForReading(t *testing.T) {
	dir, err := mount(t)
	if err != nil {
		t.Logf("no file system of its own can be mounted here: %v", err)
		return
	}
	f := newFixtureAt(t, filepath.Join(dir, "state.db"), journal.Options{})
	f.put("a", "1")
	require.NoError(t, f.Close())
	require.NoError(t, exec.Command("mount", "-o", "remount,ro", dir).Run())

	_, err = journal.Open(f.path, journal.Options{})
	require.ErrorIs(t, err, syscall.EROFS)
	require.ErrorContains(t, err, "open it for reading only")
	_, err = journal.Open(f.path+"2", journal.Options{})
	require.ErrorIs(t, err, syscall.EROFS)
	require.ErrorContains(t, err, f.path+"2")
	f.opts.ReadOnly = true
	f.open()
	f.requireWhole()
}

// A file may be written to whose directory may not, as one that is mounted alone into a container:
// nothing is left over there to remove.
func TestOpen_TakesAWritableFileOnAFileSystemForReading(t *testing.T) {
	dir, err := mount(t)
	if err != nil {
		t.Logf("no file system of its own can be mounted here: %v", err)
		return
	}
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	require.NoError(t, f.Close())
	there := filepath.Join(dir, "state.db")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	require.NoError(t, exec.Command("mount", "--bind", f.path, there).Run())
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", there).Run()) })
	require.NoError(t, exec.Command("mount", "-o", "remount,ro", dir).Run())

	f.path = there
	f.open()
	t.Cleanup(func() { _ = f.Close() })
	f.put("b", "2")
	f.requireWhole()
	require.ErrorIs(t, os.WriteFile(f.path+"2", nil, 0o600), syscall.EROFS)
}
