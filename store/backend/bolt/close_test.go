package bolt_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

// What was discarded of a type that is closed, and may never be opened again, takes no space.
func TestClose_FreesTheSpaceOfDiscardedHistory(t *testing.T) {
	f, disk := newFaulty(t)
	f.flicker("a", 30)
	last := f.remove("a").Revision
	disk.Add(journaltest.Fault{}) // of the floor
	disk.Add(tooFullToDelete(f.path)...)
	require.NoError(t, f.Compact(f.ctx, last))
	f.file.Settle()
	info, err := f.file.Info()
	require.NoError(t, err)
	require.ErrorIs(t, info.LastError, backend.ErrFull)

	require.NoError(t, f.Backend.Close())
	require.NoError(t, f.Backend.Close(), "a second Close does nothing")
	f.close()
	report, err := bolt.Check(f.path)
	require.NoError(t, err)
	require.Zero(t, report.Records)
	f.open()
	require.Equal(t, last, f.revision(), "revisions go on")
	require.Equal(t, last, f.compacted())
}

// Close of a type that could not be opened, or is only read, leaves its records alone.
func TestClose_DeletesNothingOfAFileThatIsNotToBeWritten(t *testing.T) {
	f, disk := newFaulty(t)
	last := f.flicker("a", 30).Revision
	disk.Add(journaltest.Fault{}) // of the floor
	disk.Add(tooFullToDelete(f.path)...)
	require.NoError(t, f.Compact(f.ctx, last))
	f.file.Settle()
	f.close()

	file, err := bolt.Open(f.path, bolt.Options{})
	require.NoError(t, err)
	_, err = bolt.New(file, "items", bolt.Config{Schema: backendtest.Schema(), Codec: panicking{decode: true}})
	require.Error(t, err)
	require.NoError(t, file.Close())
	file, err = bolt.Open(f.path, bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	b, err := bolt.New(file, "items", f.cfg)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	info, err := file.Info()
	require.NoError(t, err)
	require.NoError(t, info.LastError)
	require.NoError(t, file.Close())
	report, err := bolt.Check(f.path)
	require.NoError(t, err)
	require.Equal(t, 30, report.Records)
	f.open()
}

// Close does not report again that the disk has failed.
func TestClose_WritesOnlyIfThereIsHistoryToDelete(t *testing.T) {
	var told []error
	f, disk := newFaulty(t, func(f *fixture) { f.opts.OnError = func(err error) { told = append(told, err) } })
	f.put("a", "1")
	disk.Add(journaltest.Fault{Err: &journal.FailedError{Path: f.path, Cause: syscall.EIO}})
	_, err := f.Put(f.ctx, draft("b", "2"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, backend.ErrFailed)
	require.Len(t, told, 1)
	writes := disk.Writes()
	require.NoError(t, f.Backend.Close())
	require.Equal(t, writes, disk.Writes())
	require.Len(t, told, 1)
}

func TestClose_EndsEverything(t *testing.T) {
	f, disk := newFaulty(t)
	told := f.flicker("a", 200).Revision
	f.reopen(0)
	cold, hot := f.watch(1, ""), f.watch(told, "")
	require.Empty(t, hot.read(told, 10))
	_, err := cold.Next(1)
	require.NoError(t, err)
	require.NoError(t, f.file.Close())
	require.ErrorIs(t, cold.wait(), store.ErrClosed)
	require.ErrorIs(t, hot.wait(), store.ErrClosed)
	_, err = f.Get(f.ctx, "a")
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = f.Put(f.ctx, draft("b", "x"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = f.List(f.ctx, backend.ListOptions{Revision: 5})
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = f.Rewrite(f.ctx)
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = f.file.Info()
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = bolt.New(f.file, "more", f.cfg)
	require.ErrorIs(t, err, store.ErrClosed)
	require.NoError(t, f.Close())
	require.Positive(t, disk.Writes())
}

// The next New finds what was being written when a type was closed.
func TestClose_WaitsForAWriteThatIsBeingCommitted(t *testing.T) {
	f, disk := newFaulty(t)
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	var wg sync.WaitGroup
	wg.Go(func() { f.put("a", "1") })
	<-entered
	var goesOn atomic.Bool
	closed := make(chan bool)
	go func() {
		_ = f.Close()
		closed <- goesOn.Load()
	}()
	require.Eventually(t, func() bool { _, err := f.Revision(f.ctx); return err != nil }, time.Minute, time.Millisecond)
	for range 1000 {
		runtime.Gosched()
	}
	goesOn.Store(true)
	close(wait)
	require.True(t, <-closed, "Close has not returned before")
	wg.Wait()
	var err error
	f.Backend, err = bolt.New(f.file, "items", f.cfg)
	require.NoError(t, err)
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

// Close does not wait for ever for a disk that hangs. The file is closed when that goes on.
func TestClose_LeavesACommitThatHangs(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.opts.CloseTimeout = time.Millisecond })
	entered, wait, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	put := func(key string) {
		_, err := f.Put(f.ctx, draft(key, "1"), nil, backend.PutOptions{})
		done <- err
	}
	go put("a")
	<-entered
	go put("b")
	require.Eventually(t, func() bool { return f.file.Queued() == 1 }, time.Minute, time.Millisecond)
	err := f.file.Close()
	require.ErrorIs(t, err, bolt.ErrTimeout)
	require.ErrorContains(t, err, f.path)
	require.ErrorIs(t, <-done, store.ErrClosed, "what was queued is refused")
	_, err = bolt.Open(f.path, bolt.Options{LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, backend.ErrLocked)

	close(wait)
	require.NoError(t, <-done, "what was being committed is durable")
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

// Close does not wait for ever for history that is being discarded, either.
func TestClose_LeavesATrimThatHangs(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.opts.CloseTimeout = time.Millisecond })
	f.put("a", "1")
	last := f.put("a", "2")
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{}, journaltest.Fault{Entered: entered, Wait: wait}) // raising the floor, and trimming to it
	require.NoError(t, f.Compact(f.ctx, last.Revision))
	<-entered
	err := f.file.Close()
	require.ErrorIs(t, err, bolt.ErrTimeout)
	require.ErrorContains(t, err, f.path)
	_, err = bolt.Open(f.path, bolt.Options{LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, backend.ErrLocked)

	close(wait)
	f.opts.CloseTimeout = 0
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

// Close does not wait for ever for a New whose first write hangs.
func TestClose_LeavesANewThatHangs(t *testing.T) {
	slow := &slowToDeclare{entered: make(chan struct{}), wait: make(chan struct{})}
	f := newFixture(t, func(f *fixture) {
		f.opts.CloseTimeout = time.Millisecond
		f.wrap = func(j journal.Journal) journal.Journal {
			slow.Faulty = journaltest.NewFaulty(j, f.path)
			return slow
		}
	})
	f.put("a", "1")
	opened := make(chan error, 1)
	go func() {
		_, err := bolt.New(f.file, "more", f.cfg)
		opened <- err
	}()
	<-slow.entered
	err := f.file.Close()
	require.ErrorIs(t, err, bolt.ErrTimeout)
	require.ErrorContains(t, err, f.path)
	_, err = bolt.Open(f.path, bolt.Options{LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, backend.ErrLocked)

	close(slow.wait)
	require.ErrorIs(t, <-opened, store.ErrClosed)
	f.opts.CloseTimeout, f.wrap = 0, nil
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

// vast is a journal whose discarded history never ends.
type vast struct {
	journal.Journal
	once    sync.Once
	entered chan struct{} // closed when the first of it is deleted
}

func (v *vast) Trim(string, journal.Budget) (journal.Trimmed, error) {
	v.once.Do(func() { close(v.entered) })
	runtime.Gosched()
	return journal.Trimmed{More: true}, nil
}

// Close does not wait until all discarded history is deleted. The rest goes when the file is opened again.
func TestClose_LeavesHistoryThatIsBeingDeleted(t *testing.T) {
	disk := &vast{entered: make(chan struct{})}
	f := newFixture(t, func(f *fixture) {
		f.wrap = func(j journal.Journal) journal.Journal { disk.Journal = j; return disk }
	})
	f.put("a", "1")
	last := f.put("a", "2")
	require.NoError(t, f.Compact(f.ctx, last.Revision))
	<-disk.entered
	f.close()

	f.wrap = nil
	f.open()
	f.file.Settle()
	b, err := f.Bounds()
	require.NoError(t, err)
	require.Equal(t, b.Floor, b.Trimmed)
}

// What is queued when the file is closed is committed or refused, never lost.
func TestClose_CommitsOrRefuses(t *testing.T) {
	for range 5 {
		f := newFixture(t)
		var mu sync.Mutex
		acked := map[string]bool{}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("%d/%d", w, i)
					if _, err := f.Put(f.ctx, draft(key, "x"), nil, backend.PutOptions{}); err != nil {
						if !errors.Is(err, store.ErrClosed) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					acked[key] = true
					mu.Unlock()
				}
			})
		}
		require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(acked) > 50 }, time.Minute, time.Millisecond)
		f.close()
		wg.Wait()
		f.open()
		for key := range acked {
			_, err := f.Get(f.ctx, key)
			require.NoError(t, err)
		}
		require.Len(t, f.list(backend.ListOptions{}), len(acked), "and nothing was written that was refused")
	}
}

// A file is closed even if the Notify of a watch, which Close calls, ends the goroutine, as
// t.FailNow does. So is each type.
func TestClose_ReleasesTheFileIfNotifyEndsTheGoroutine(t *testing.T) {
	f := newFixture(t)
	other, err := bolt.New(f.file, "other", f.cfg)
	require.NoError(t, err)
	for _, b := range []*bolt.Backend{f.Backend, other} {
		w, err := b.Watch(f.ctx, backend.WatchOptions{Notify: runtime.Goexit})
		require.NoError(t, err)
		batch, err := w.Next(1)
		require.NoError(t, err)
		require.Empty(t, batch.Events)
	}
	hot := f.watch(0, "")
	require.Empty(t, hot.read(0, 1))
	apart(func() { _ = f.file.Close() })
	for _, b := range []*bolt.Backend{f.Backend, other} {
		_, err = b.Revision(f.ctx)
		require.ErrorIs(t, err, store.ErrClosed)
	}
	require.Zero(t, f.clock.Pending())
	f.open()
}

func TestClose_GivesUpTheNameIfNotifyEndsTheGoroutine(t *testing.T) {
	f := newFixture(t)
	w, err := f.Watch(f.ctx, backend.WatchOptions{Notify: runtime.Goexit})
	require.NoError(t, err)
	_, err = w.Next(1)
	require.NoError(t, err)
	apart(func() { _ = f.Backend.Close() })
	f.Backend, err = bolt.New(f.file, "items", f.cfg)
	require.NoError(t, err)
}

// apart runs fn in a goroutine, which user code may end.
func apart(fn func()) {
	var wg sync.WaitGroup
	wg.Go(fn)
	wg.Wait()
}
