//go:build unix

package journal_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.ErrorContains(t, err, f.path)
	restore()

	f.stage(journal.Put, "y", "y")
	err = f.commit()
	require.ErrorAs(t, err, &failed, "also when the disk is well again")
	require.False(t, failed.Uncertain)
	require.ErrorIs(t, err, syscall.EBADF, "it says why")
	_, err = f.Trim(logName, journal.Budget{})
	require.ErrorIs(t, err, journal.ErrFailed)
	_, err = f.Declare("more", 1)
	require.ErrorIs(t, err, journal.ErrFailed)
	require.Equal(t, f.states[last], stateAt(t, f.File, last), "what was durable can be read")
	require.NoError(t, f.Close())
	f.open()
	b, err := f.Bounds(logName)
	require.NoError(t, err)
	require.Equal(t, f.states[b.Last], stateAt(t, f.File, b.Last))
	require.NoError(t, f.Close())
}

// swapDescriptor puts another file under the descriptor of the open one.
func (f *fixture) swapDescriptor(other *os.File) (restore func()) {
	f.Helper()
	fd := f.Descriptor()
	saved, err := syscall.Dup(fd)
	require.NoError(f, err)
	require.NoError(f, syscall.Dup2(int(other.Fd()), fd))
	return func() {
		require.NoError(f, syscall.Dup2(saved, fd))
		require.NoError(f, syscall.Close(saved))
	}
}
