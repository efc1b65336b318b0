package journaltest_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

func newFaulty(t *testing.T) (*journaltest.Faulty, func() error, func() uint64) {
	path := filepath.Join(t.TempDir(), "state.db")
	file, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	_, err = file.Declare("pods", 1)
	require.NoError(t, err)
	f := journaltest.NewFaulty(file, path)
	last := func() uint64 {
		b, err := f.Bounds("pods")
		require.NoError(t, err)
		return b.Last
	}
	write := func() error {
		next := last() + 1
		r := journal.Record{Kind: journal.Put, Key: fmt.Append(nil, next), Created: next}
		return f.Append(journal.Batch{Entries: []journal.Entry{{Log: "pods", Revision: next, Data: r.AppendTo(nil, next)}}})
	}
	return f, write, last
}

func TestFaulty_FailsOnceForWantOfSpace(t *testing.T) {
	f, write, last := newFaulty(t)
	f.Add(journaltest.Fault{}, journaltest.Fault{Err: &journal.FullError{Cause: syscall.ENOSPC}})
	require.NoError(t, write())
	require.ErrorIs(t, write(), journal.ErrFull)
	require.Equal(t, uint64(2), last())
	require.NoError(t, write())
	require.Equal(t, uint64(3), last())
	require.Equal(t, 3, f.Writes())
}

func TestFaulty_FailsForGoodBeforeAndAfter(t *testing.T) {
	for phase, found := range map[journaltest.Phase]uint64{journaltest.Before: 1, journaltest.After: 2} {
		f, write, last := newFaulty(t)
		f.Add(journaltest.Fault{Phase: phase, Err: &journal.FailedError{Uncertain: true, Cause: syscall.EIO}})
		var failed *journal.FailedError
		require.ErrorAs(t, write(), &failed)
		require.True(t, failed.Uncertain)
		require.ErrorAs(t, write(), &failed)
		require.False(t, failed.Uncertain)
		require.ErrorIs(t, failed, syscall.EIO)
		_, err := f.Trim("pods", journal.Budget{})
		require.ErrorIs(t, err, journal.ErrFailed)
		require.Equal(t, found, last())
	}
}

func TestFaulty_Waits(t *testing.T) {
	f, write, last := newFaulty(t)
	entered, wait, done := make(chan struct{}), make(chan struct{}), make(chan error)
	f.Add(journaltest.Fault{Entered: entered, Wait: wait})
	go func() { done <- write() }()
	<-entered
	require.Equal(t, uint64(1), last())
	close(wait)
	require.NoError(t, <-done)
	require.Equal(t, uint64(2), last())
}
