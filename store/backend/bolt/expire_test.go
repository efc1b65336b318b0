package bolt_test

import (
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
	"github.com/watchmill/watchmill/usercode"
)

// Each attempt would be reported, and none could succeed.
func TestExpiry_IsNotTriedAgainWhenTheDiskHasFailed(t *testing.T) {
	reported := 0
	f, disk := newFaulty(t, func(f *fixture) { f.opts.OnError = func(error) { reported++ } })
	f.putFor(time.Minute, "a", "1")
	disk.Add(journaltest.Fault{Err: &bolt.FailedError{Path: f.path, Uncertain: true, Cause: syscall.EIO}})
	f.clock.Advance(time.Minute)
	require.ErrorIs(t, f.file.Failure(), syscall.EIO)
	before := reported
	f.clock.Advance(time.Hour)
	require.Equal(t, before, reported)
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

// An expiry that finds no space is tried again.
func TestExpiry_TriesAgainWhenThereIsSpace(t *testing.T) {
	var reported []error
	f, disk := newFaulty(t, func(f *fixture) { f.opts.OnError = func(err error) { reported = append(reported, err) } })
	f.putFor(time.Minute, "a", "1")
	disk.Add(journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}})
	f.clock.Advance(time.Minute)
	require.Len(t, f.list(backend.ListOptions{}), 1)
	require.Len(t, reported, 1)
	require.ErrorIs(t, reported[0], backend.ErrFull)
	info, err := f.file.Info()
	require.NoError(t, err)
	require.ErrorIs(t, info.LastError, backend.ErrFull)
	f.clock.Advance(time.Second)
	require.Empty(t, f.list(backend.ListOptions{}))
}

// Objects that have expired while the file was closed keep it from being opened only if nothing
// can be written any more.
func TestNew_DeletesLaterWhatHasExpiredIfTheDiskIsFull(t *testing.T) {
	f, _ := newFaulty(t)
	f.putFor(time.Minute, "a", "1")
	f.putFor(time.Minute, "b", "1")
	f.close()
	f.clock.Advance(time.Hour)
	failing := func(err error) func(journal.Journal) journal.Journal {
		return func(j journal.Journal) journal.Journal {
			disk := journaltest.NewFaulty(j, f.path)
			disk.Add(journaltest.Fault{Err: err})
			return disk
		}
	}
	file, err := bolt.OpenOver(f.path, f.opts, failing(&bolt.FailedError{Path: f.path, Cause: syscall.EIO}))
	require.NoError(t, err)
	_, err = bolt.New(file, "items", f.cfg)
	require.ErrorIs(t, err, backend.ErrFailed)
	require.NoError(t, file.Close())

	f.wrap = failing(&bolt.FullError{Path: f.path, Cause: syscall.ENOSPC})
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), 2)
	info, err := f.file.Info()
	require.NoError(t, err)
	require.ErrorIs(t, info.LastError, backend.ErrFull)
	f.clock.Advance(time.Second)
	require.Empty(t, f.list(backend.ListOptions{}))
}

// A panic in OnError ends neither the program nor what reports the error.
func TestExpiry_GoesOnWhenOnErrorPanics(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.opts.OnError = func(error) { panic("cannot log") } })
	f.putFor(time.Minute, "a", "1")
	disk.Add(journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}})
	require.NotPanics(t, func() { f.clock.Advance(time.Minute) })
	info, err := f.file.Info()
	require.NoError(t, err)
	require.ErrorIs(t, info.LastError, backend.ErrFull)
	require.ErrorIs(t, info.LastError, usercode.ErrPanic)
	require.ErrorContains(t, info.LastError, "Options.OnError")
	f.clock.Advance(time.Second)
	require.Empty(t, f.list(backend.ListOptions{}), "the expiry was tried again")
}

// An OnError that ends its goroutine, as t.FailNow does, ends neither the program nor what reports
// the error.
func TestExpiry_GoesOnWhenOnErrorEndsItsGoroutine(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.opts.OnError = func(error) { runtime.Goexit() } })
	f.putFor(time.Minute, "a", "1")
	disk.Add(journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}})
	apart(func() { f.clock.Advance(time.Minute) })
	info, err := f.file.Info()
	require.NoError(t, err)
	require.ErrorIs(t, info.LastError, backend.ErrFull)
	require.ErrorIs(t, info.LastError, usercode.ErrGoexit)
	apart(func() { f.clock.Advance(time.Second) })
	require.Empty(t, f.list(backend.ListOptions{}), "the expiry was tried again")
}

// leavingClock ends the goroutine that arms a timer, while leave is set.
type leavingClock struct {
	*clock.Virtual
	leave bool
}

func (c *leavingClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	if c.leave {
		runtime.Goexit()
	}
	return c.Virtual.AfterFunc(d, f)
}

// The write has been made, and is told, though its caller does not return. The next write sets the alarm.
func TestExpiry_GoesOnWhenTheClockEndsTheGoroutineOfAWrite(t *testing.T) {
	var leaving *leavingClock
	f := newFixture(t, func(f *fixture) {
		leaving = &leavingClock{Virtual: f.clock}
		f.opts.Clock = leaving
	})
	first := f.putFor(time.Minute, "a", "1")
	notified := 0
	w, err := f.Watch(f.ctx, backend.WatchOptions{From: first.Revision, Notify: func() { notified++ }})
	require.NoError(t, err)
	defer w.Close()
	batch, err := w.Next(1)
	require.NoError(t, err)
	require.Empty(t, batch.Events)
	leaving.leave = true
	apart(func() { _, _ = f.Put(f.ctx, draft("a", "2"), first, backend.PutOptions{TTL: time.Hour}) })
	leaving.leave = false
	require.Equal(t, 1, notified)
	batch, err = w.Next(1)
	require.NoError(t, err)
	require.Equal(t, first.Revision+1, batch.Through)

	f.put("b", "1")
	f.clock.Advance(time.Minute)
	require.Len(t, f.list(backend.ListOptions{}), 2, "it expires when the last write says")
	f.clock.Advance(time.Hour)
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

// An object that is given more time in the transaction that would delete it stays.
func TestExpiry_SparesWhatIsWrittenInTheSameTransaction(t *testing.T) {
	f, disk := newFaulty(t)
	a := f.putFor(time.Minute, "a", "1")
	f.putFor(time.Minute, "b", "1")
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	var wg sync.WaitGroup
	wg.Go(func() { f.put("first", "x") })
	<-entered
	wg.Go(func() {
		if _, err := f.Put(f.ctx, draft("a", "2"), a, backend.PutOptions{}); err != nil {
			t.Error(err)
		}
	})
	require.Eventually(t, func() bool { return f.file.Queued() == 1 }, time.Minute, time.Millisecond)
	wg.Go(func() { f.clock.Advance(time.Hour) })
	require.Eventually(t, func() bool { return f.file.Queued() == 2 }, time.Minute, time.Millisecond)
	close(wait)
	wg.Wait()
	require.Len(t, f.list(backend.ListOptions{}), 2, "a and first")
	f.reopen(0)
	require.Len(t, f.list(backend.ListOptions{}), 2)
}
