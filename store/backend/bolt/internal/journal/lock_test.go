package journal_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

func TestOpen_RefusesAFileThatIsOpen(t *testing.T) {
	f := newFixture(t, journal.Options{})
	start := time.Now()
	_, err := journal.Open(f.path, journal.Options{LockTimeout: 30 * time.Millisecond})
	require.ErrorIs(t, err, journal.ErrLocked)
	require.GreaterOrEqual(t, time.Since(start), 30*time.Millisecond)
	var locked *journal.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, f.path, locked.Path)
	require.True(t, locked.Here)

	link := filepath.Join(t.TempDir(), "link.db")
	require.NoError(t, os.Symlink(f.path, link))
	_, err = journal.Open(link, journal.Options{LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, journal.ErrLocked, "by another name")
	_, err = journal.Open(f.path, journal.Options{LockTimeout: time.Millisecond, ReadOnly: true})
	require.ErrorAs(t, err, &locked)
	require.True(t, locked.Here, "also to a reader")
	_, err = journal.Check(f.path, time.Millisecond)
	require.ErrorIs(t, err, journal.ErrLocked)
}

// Readers keep a writer out until the last of them closes the file.
func TestOpen_RefusesAFileThatIsReadHere(t *testing.T) {
	f := newFixture(t, journal.Options{})
	require.NoError(t, f.Close())
	f.opts.ReadOnly = true
	f.open()
	second, err := journal.Open(f.path, f.opts)
	require.NoError(t, err)
	for _, reader := range []*journal.File{second, f.File} {
		_, err = journal.Open(f.path, journal.Options{LockTimeout: time.Millisecond})
		var locked *journal.LockedError
		require.ErrorAs(t, err, &locked)
		require.True(t, locked.Here)
		require.NoError(t, reader.Close())
	}
	f.opts.ReadOnly = false
	f.open()
}

func TestOpen_WaitsForTheLock(t *testing.T) {
	f := newFixture(t, journal.Options{})
	closed := make(chan error)
	time.AfterFunc(20*time.Millisecond, func() { closed <- f.Close() })
	second, err := journal.Open(f.path, journal.Options{LockTimeout: 10 * time.Second})
	require.NoError(t, err)
	require.NoError(t, <-closed)
	require.NoError(t, second.Close())
}

// A second Close leaves the lock alone, which may be another's by then.
func TestClose_ReleasesTheLockOnce(t *testing.T) {
	f := newFixture(t, journal.Options{})
	first := f.File
	require.NoError(t, first.Close())
	f.open()
	require.NoError(t, first.Close())
	_, err := journal.Open(f.path, journal.Options{LockTimeout: time.Millisecond})
	var locked *journal.LockedError
	require.ErrorAs(t, err, &locked)
	require.True(t, locked.Here, "some systems do not lock a file against their own process")
	f.put("a", "1")
}

// waiting begins to open the file at path, which is locked, and returns once it waits for that.
func waiting(path string) (opened chan *journal.File, failed chan error) {
	opened, failed = make(chan *journal.File, 1), make(chan error, 1)
	go func() {
		f, err := journal.Open(path, journal.Options{LockTimeout: time.Hour})
		opened <- f
		failed <- err
	}()
	synctest.Wait()
	return opened, failed
}

// A file that takes the place of the one that was locked is the one that is opened, and the
// one before it is let go of.
func TestOpen_OpensTheFileThatTakesThePlaceOfALockedOne(t *testing.T) {
	f, next := newFixture(t, journal.Options{}), newFixture(t, journal.Options{})
	replaced := filepath.Join(t.TempDir(), "replaced.db")
	require.NoError(t, os.Link(f.path, replaced))
	id := next.Identity()
	require.NoError(t, next.Close())
	synctest.Test(t, func(t *testing.T) {
		opened, failed := waiting(f.path)
		require.NoError(t, os.Rename(next.path, f.path))
		require.NoError(t, f.Close())
		second := <-opened
		require.NoError(t, <-failed)
		require.Equal(t, id, second.Identity())
		first, err := journal.Open(replaced, journal.Options{})
		require.NoError(t, err)
		require.NoError(t, first.Close())
		require.NoError(t, second.Close())
	})
}

// A file that was removed while it was locked is let go of: there is a new one.
func TestOpen_MakesAFileInPlaceOfALockedOneThatIsRemoved(t *testing.T) {
	f := newFixture(t, journal.Options{})
	synctest.Test(t, func(t *testing.T) {
		opened, failed := waiting(f.path)
		require.NoError(t, os.Remove(f.path))
		require.NoError(t, f.Close())
		second := <-opened
		require.NoError(t, <-failed)
		require.NotEqual(t, f.Identity().ID, second.Identity().ID)
		require.FileExists(t, f.path)
		require.NoError(t, second.Close())
	})
}

func TestOpen_WaitsForASecondUnlessToldOtherwise(t *testing.T) {
	f := newFixture(t, journal.Options{})
	synctest.Test(t, func(t *testing.T) {
		_, err := journal.Open(f.path, journal.Options{})
		var locked *journal.LockedError
		require.ErrorAs(t, err, &locked)
		require.GreaterOrEqual(t, locked.Waited, journal.DefaultLockTimeout)
		require.Less(t, locked.Waited, 2*journal.DefaultLockTimeout)
	})
}
