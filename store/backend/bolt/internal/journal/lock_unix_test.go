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

// Other processes are kept out until the file is closed, also after bbolt has failed.
func TestOpen_KeepsOtherProcessesOut(t *testing.T) {
	for name, harm := range map[string]func(f *fixture){
		"whole": func(*fixture) {},
		"damaged": func(f *fixture) {
			require.NoError(f, os.Truncate(f.path, 2*pageSize))
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
