package journal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

func TestOpen_TwoFilesDiffer(t *testing.T) {
	require.NotEqual(t, newFixture(t, journal.Options{}).Identity().ID, newFixture(t, journal.Options{}).Identity().ID)
}

// What was left when it was made, or shrunk, is removed; what is locked there is
// waited for.
func TestOpen_RemovesWhatACrashHasLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for range 2 { // without and with the file itself
		require.NoError(t, os.WriteFile(journal.Unfinished(path), []byte("half"), 0o600))
		f, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		require.NoFileExists(t, journal.Unfinished(path))
		require.NoError(t, f.Close())
	}
}

// A directory with files is not a copy that a crash has left, and is in the way of writers alone.
func TestOpen_SaysWhatItCannotRemove(t *testing.T) {
	f := newFixture(t, journal.Options{})
	require.NoError(t, f.Close())
	mine := filepath.Join(journal.Unfinished(f.path), "mine")
	require.NoError(t, os.MkdirAll(mine, 0o700))
	for range 2 {
		_, err := journal.Open(f.path, journal.Options{LockTimeout: time.Millisecond})
		require.ErrorContains(t, err, "cannot remove what a crash has left: ")
		require.ErrorContains(t, err, journal.Unfinished(f.path))
		require.NotErrorIs(t, err, journal.ErrLocked)
	}
	reader, err := journal.Open(f.path, journal.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	require.DirExists(t, mine)
	require.NoError(t, os.Remove(mine))
	f.open()
	require.NoDirExists(t, journal.Unfinished(f.path))
}

// A file that stands ready to replace another, or a snapshot of it, usually has the other's
// name and one of these endings.
func TestOpen_LeavesTheFilesBesideItAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for range 2 { // without and with the file itself
		for _, ending := range []string{".new", ".tmp", ".bak", ".old", ".lock"} {
			require.NoError(t, os.WriteFile(path+ending, []byte(ending), 0o600))
		}
		f, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		for _, ending := range []string{".new", ".tmp", ".bak", ".old", ".lock"} {
			require.FileExists(t, path+ending)
			require.Equal(t, ending, string(read(t, path+ending)))
		}
	}
}

// The first process makes the file, and the others find it, one after the other.
func TestOpen_IsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	ids := make([]journal.Identity, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			f, err := journal.Open(path, journal.Options{LockTimeout: 20 * time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = f.Identity()
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
}

// Between two steps of a process that begins to make the file, another can make and open it,
// which removes what the first has begun.
func TestOpen_GivesWayToTheProcessThatMadeTheFile(t *testing.T) {
	f := newFixture(t, journal.Options{})
	for _, beside := range []bool{true, false} {
		if beside {
			require.NoError(t, os.WriteFile(journal.Unfinished(f.path), nil, 0o600))
		}
		free, err := journal.IsFree(f.path)
		require.NoError(t, err)
		require.False(t, free)
		require.NoFileExists(t, journal.Unfinished(f.path))
	}
	free, err := journal.IsFree(f.path + "x")
	require.NoError(t, err)
	require.True(t, free)
}

func TestOpen_MakesTheFileThatALinkLeadsTo(t *testing.T) {
	dir := t.TempDir()
	target, link, loop := filepath.Join(dir, "target.db"), filepath.Join(dir, "link.db"), filepath.Join(dir, "loop.db")
	require.NoError(t, os.Symlink("target.db", link))
	require.NoError(t, os.Symlink("loop.db", loop))
	f, err := journal.Open(link, journal.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	requireKind(t, target, 0)
	requireKind(t, link, fs.ModeSymlink)
	_, err = journal.Open(loop, journal.Options{})
	require.ErrorContains(t, err, "loop.db")
}
