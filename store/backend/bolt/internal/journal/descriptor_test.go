//go:build unix

package journal_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// A file whose name cannot be made durable is not there afterwards, as after other failures:
// the next call finds what it would have found before.
func TestOpen_TakesBackAFileWhoseNameMayNotLast(t *testing.T) {
	inChild(t, func() { placeWithFewDescriptors(t) })
}

func placeWithFewDescriptors(t *testing.T) {
	_, snapshot := snapshotted(t)
	path := filepath.Join(t.TempDir(), "state.db")
	for name, place := range map[string]func() error{
		"make": func() error {
			f, err := journal.Open(path, journal.Options{})
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"restore to": func() error {
			_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
			return err
		},
	} {
		free := leaveDescriptors(t, 1) // for the file, and none for its directory
		err := place()
		require.ErrorIs(t, err, syscall.EMFILE)
		require.ErrorContains(t, err, "cannot "+name+" "+path)
		free()
		require.NoFileExists(t, path)
		require.NoFileExists(t, journal.Unfinished(path))
		require.NoError(t, place())
		require.NoError(t, os.Remove(path))
	}
}

// leaveDescriptors lets this process open n more files, until free is called.
func leaveDescriptors(t *testing.T, n int) (free func()) {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	before := limit.Cur
	assign(&limit.Cur, 64)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	var taken []*os.File
	file, err := os.Open(os.DevNull)
	for ; err == nil; file, err = os.Open(os.DevNull) {
		taken = append(taken, file)
	}
	require.ErrorIs(t, err, syscall.EMFILE)
	last := len(taken) - n
	for _, file := range taken[last:] {
		require.NoError(t, file.Close())
	}
	return func() {
		for _, file := range taken[:last] {
			require.NoError(t, file.Close())
		}
		limit.Cur = before
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	}
}

// What was not restored holds no descriptor, so that the next try has it.
func TestRestore_KeepsNothingOpen(t *testing.T) {
	inChild(t, func() { restoreWithFewDescriptors(t) })
}

func restoreWithFewDescriptors(t *testing.T) {
	f, snapshot := snapshotted(t)
	dir := t.TempDir()
	damaged := bytes.Clone(snapshot)
	damaged[len(damaged)/2]++
	free := leaveDescriptors(t, 2) // for the file and its directory
	defer free()
	for n := range 3 {
		path := filepath.Join(dir, fmt.Sprint(n))
		for range 3 {
			_, err := journal.Restore(t.Context(), bytes.NewReader(damaged), path, journal.RestoreOptions{})
			require.ErrorIs(t, err, journal.ErrCorrupt)
			_, err = journal.Restore(t.Context(), bytes.NewReader(snapshot), f.path, journal.RestoreOptions{})
			require.ErrorIs(t, err, fs.ErrExist)
		}
		_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
		require.NoError(t, err)
	}
}

// A file whose copy cannot be made is used as it is. One whose copy has taken its place, which
// may not last, is not used, and either is there when it is opened again.
func TestOpen_ShrinksWithFewDescriptors(t *testing.T) {
	inChild(t, func() { shrinkWithFewDescriptors(t) })
}

func shrinkWithFewDescriptors(t *testing.T) {
	f, before := newMostlyFree(t)
	require.NoError(t, f.Close())
	f.opts.ShrinkAt = 0.5

	free := leaveDescriptors(t, 1) // for the file, and none for its copy
	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.ErrorIs(t, u.Unshrunk, syscall.EMFILE)
	require.ErrorContains(t, u.Unshrunk, f.path+" stays as large as it is")
	require.Equal(t, before, u.Size)
	require.NoError(t, f.Close())
	free()

	free = leaveDescriptors(t, 2) // and none for their directory
	_, err = journal.Open(f.path, f.opts)
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorContains(t, err, "cannot shrink "+f.path)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err, "neither is open any more")
	f.open()
	require.Less(t, f.size(), before/2)
	require.NoError(t, null.Close())
	free()
	f.requireWhole()
	f.requireChecked()
}
