package journal_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// Opening a file that is mostly free copies it, and the copy is as the file was.
func TestOpen_Shrinks(t *testing.T) {
	f, before := newMostlyFree(t)
	id := f.Identity()
	replaced := filepath.Join(t.TempDir(), "replaced.db")
	require.NoError(t, os.Link(f.path, replaced))

	f.opts.ShrinkAt = 0.5
	f.reopen()
	after, err := f.Usage()
	require.NoError(t, err)
	require.Less(t, after.Size, before/2)
	require.Equal(t, id, f.Identity())
	_, err = journal.Open(f.path, journal.Options{LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, journal.ErrLocked, "the copy is locked")
	old, err := journal.Open(replaced, journal.Options{LockTimeout: time.Millisecond})
	require.NoError(t, err, "and what it has replaced is not")
	require.NoError(t, old.Close())
	f.random(newRandom(2), 5, 20, 100)
	f.requireWhole()
	f.requireChecked()
	require.NoFileExists(t, journal.Unfinished(f.path))
}

// A file is copied if more of it is free than the share that is asked for, and else never.
func TestOpen_ShrinksNoMoreThanItIsAskedTo(t *testing.T) {
	f, before := newMostlyFree(t)
	u, err := f.Usage()
	require.NoError(t, err)
	share := float64(u.Free) / float64(u.Size)
	for _, shrinkAt := range []float64{0, (1 + share) / 2} {
		f.opts.ShrinkAt = shrinkAt
		f.reopen()
		require.Equal(t, before, f.size(), "at %v, of which %v are free", shrinkAt, share)
	}
	f.opts.ShrinkAt = share / 2
	f.reopen()
	require.Less(t, f.size(), before/2)
}

// shrink frees some space in the file, closes it, and copies it without that.
func (f *fixture) shrink(free int) (before, after int64) {
	f.Helper()
	f.put("large", string(make([]byte, free)))
	f.remove("large")
	f.raise(f.last)
	f.trim(journal.Budget{})
	require.NoError(f, f.Close())
	before, after, err := journal.Shrink(f.ctx, f.path, 0)
	require.NoError(f, err)
	return before, after
}

// The pages of a copy are full, as those of records that are only added are.
func TestShrink_FillsThePages(t *testing.T) {
	f := newFixture(t, journal.Options{})
	const records = 800
	size := scaled(750)
	for i := range records {
		f.stage(journal.Put, fmt.Sprint(i), string(make([]byte, size)))
	}
	require.NoError(t, f.commit())
	_, after := f.shrink(1 << 20)
	require.Less(t, after, int64(records*size*3/2))
	f.open()
	f.requireWhole()
}

// A large file is copied in several transactions, since one is in memory as a whole.
func TestShrink_CopiesInTransactionsOfBoundedSize(t *testing.T) {
	const records, size = 12, 1 << 20
	f := newFixture(t, journal.Options{})
	for i := range records {
		f.put(fmt.Sprint(i), string(make([]byte, size)))
	}
	before, after := f.shrink(2 * size)
	require.Less(t, after, before)
	f.open()
	const first, buckets = 1, 2
	require.Equal(t, first+buckets+records*size/(4<<20), f.LastCommit())
	f.requireWhole()
	f.requireChecked()
}

func TestOpen_DoesNotShrinkASmallFile(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 50, 500)
	f.raise(f.last)
	f.trim(journal.Budget{})
	u, err := f.Usage()
	require.NoError(t, err)
	require.Greater(t, u.Free, u.Size/2)
	require.NoError(t, f.Close())
	before, err := os.Stat(f.path)
	require.NoError(t, err)
	f.opts.ShrinkAt = 0.5
	f.open()
	after, err := os.Stat(f.path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
}

// A copy takes the place of the file, and not that of a link to it; else the file under its
// own name would stay behind, and the link would become another.
func TestOpen_ShrinksBehindALinkAndKeepsThePermissions(t *testing.T) {
	f, before := newMostlyFree(t)
	require.NoError(t, f.Close())
	require.NoError(t, os.Chmod(f.path, 0o640))
	dir := t.TempDir()
	far, link := filepath.Join(dir, "far"), filepath.Join(dir, "link.db")
	require.NoError(t, os.Symlink(filepath.Dir(f.path), far))
	require.NoError(t, os.Symlink(filepath.Join("far", filepath.Base(f.path)), link), "by a link to a link's file")

	shrunk, err := journal.Open(link, journal.Options{ShrinkAt: 0.5})
	require.NoError(t, err)
	require.NoError(t, shrunk.Close())
	requireKind(t, link, fs.ModeSymlink)
	info, err := os.Stat(f.path)
	require.NoError(t, err)
	require.Less(t, info.Size(), before/2)
	require.Equal(t, fs.FileMode(0o640), info.Mode())
	f.open()
	f.requireWhole()
	f.requireChecked()
}

func TestShrink_MakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing.db")
	_, _, err := journal.Shrink(t.Context(), path, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path)
	require.NoFileExists(t, path)
}

func TestShrink_WaitsForTheLock(t *testing.T) {
	f, _ := newMostlyFree(t)
	const timeout = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		_, _, err := journal.Shrink(t.Context(), f.path, timeout)
		var locked *journal.LockedError
		require.ErrorAs(t, err, &locked)
		require.GreaterOrEqual(t, locked.Waited, timeout)
	})
}
