//go:build unix && !solaris && !aix && !android

package journal_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// lockElsewhere locks a file as another process does, for which the system takes another opening
// of the file in this one.
func lockElsewhere(t *testing.T, path string, how int) (unlock func()) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB))
	return func() { require.NoError(t, file.Close()) }
}

func TestOpen_RefusesAFileThatAnotherProcessHasOpen(t *testing.T) {
	f := newFixture(t, journal.Options{})
	require.NoError(t, f.Close())
	for _, c := range []struct {
		how     int
		opts    journal.Options
		refused bool
	}{
		{syscall.LOCK_EX, journal.Options{}, true},
		{syscall.LOCK_EX, journal.Options{ReadOnly: true}, true},
		{syscall.LOCK_SH, journal.Options{}, true},
		{syscall.LOCK_SH, journal.Options{ReadOnly: true}, false},
	} {
		unlock := lockElsewhere(t, f.path, c.how)
		c.opts.LockTimeout = 5 * time.Millisecond // for more tries than one
		opened, err := journal.Open(f.path, c.opts)
		if c.refused {
			var locked *journal.LockedError
			require.ErrorAs(t, err, &locked)
			require.False(t, locked.Here)
			require.ErrorContains(t, err, f.path+" is locked: another process")
		} else {
			require.NoError(t, err)
			require.NoError(t, opened.Close())
		}
		unlock()
		f.open()
		require.NoError(t, f.Close())
	}
}

// What another process has not written to its end is neither judged nor removed.
func TestOpen_LeavesAFileThatAnotherProcessHasOpen(t *testing.T) {
	f := newFixture(t, journal.Options{})
	require.NoError(t, f.Close())
	require.NoError(t, os.Truncate(f.path, int64(3*pageSize)))
	require.NoError(t, os.WriteFile(journal.Unfinished(f.path), []byte("half"), 0o600))
	unlock := lockElsewhere(t, f.path, syscall.LOCK_EX)
	_, err := journal.Open(f.path, journal.Options{LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, journal.ErrLocked)
	_, err = journal.Check(f.path, time.Millisecond)
	require.ErrorIs(t, err, journal.ErrLocked)
	require.FileExists(t, journal.Unfinished(f.path))
	unlock()
	_, err = journal.Open(f.path, journal.Options{})
	require.ErrorIs(t, err, journal.ErrCorrupt)
}

// Other processes are kept out until the file is closed, also after bbolt has failed.
func TestOpen_KeepsOtherProcessesOut(t *testing.T) {
	for name, harm := range map[string]func(f *fixture){
		"whole": func(*fixture) {},
		"damaged": func(f *fixture) {
			require.NoError(f, os.Truncate(f.path, int64(2*pageSize)))
			require.ErrorIs(f, f.Read(f.ctx, logName, func(v journal.View) error {
				return v.Scan(0, f.last, func(uint64, journal.Record) (bool, error) { return true, nil })
			}), journal.ErrCorrupt)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, journal.Options{})
			f.random(newRandom(1), 20, 20, 200)
			file, err := os.Open(f.path)
			require.NoError(t, err)
			defer file.Close()
			harm(f)
			require.ErrorIs(t, syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
			require.NoError(t, f.Close())
			require.NoError(t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
		})
	}
}
