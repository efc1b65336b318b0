package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
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

// newFaulty is newFixture with a disk that fails as it is told.
func newFaulty(t *testing.T, change ...func(*fixture)) (*fixture, *journaltest.Faulty) {
	f := newFixture(t, append(change, func(f *fixture) {
		f.wrap = func(j journal.Journal) journal.Journal {
			f.disk = journaltest.NewFaulty(j, f.path)
			return f.disk
		}
	})...)
	return f, f.disk
}

// A write is not visible before it is durable.
func TestWrite_ShowsNothingBeforeItLasts(t *testing.T) {
	f, disk := newFaulty(t)
	first := f.put("a", "1")
	w := f.watch(first.Revision, "")
	require.Empty(t, w.read(first.Revision, 10))
	entered, wait, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	disk.Add(journaltest.Fault{Phase: journaltest.Before, Entered: entered, Wait: wait})
	go func() {
		_, err := f.Put(f.ctx, draft("a", "2"), first, backend.PutOptions{})
		done <- err
	}()
	<-entered
	o, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "1", textOf(o))
	require.Equal(t, first.Revision, f.revision())
	require.Len(t, f.list(backend.ListOptions{}), 1)
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Empty(t, batch.Events)
	close(wait)
	require.NoError(t, <-done)
	require.Len(t, w.read(first.Revision+1, 10), 1)
}

// Any number of writers of any number of types share transactions.
func TestWrite_SharesSyncs(t *testing.T) {
	f, disk := newFaulty(t)
	others, err := bolt.New(f.file, "others", f.cfg)
	require.NoError(t, err)
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	var wg sync.WaitGroup
	wg.Go(func() { f.put("first", "x") })
	<-entered
	before := disk.Writes()
	for i := range 100 {
		wg.Go(func() {
			_, err := []*bolt.Backend{f.Backend, others}[i%2].Put(f.ctx, draft(fmt.Sprint("k", i), "x"), nil, backend.PutOptions{})
			if err != nil {
				t.Error(err)
			}
		})
	}
	require.Eventually(t, func() bool { return f.file.Queued() == 100 }, time.Minute, time.Millisecond)
	close(wait)
	wg.Wait()
	require.Equal(t, before+1, disk.Writes())
	require.Len(t, f.list(backend.ListOptions{}), 51)
}

// Of two writes of one transaction that both expect what is there, the second
// fails alone.
func TestWrite_SeesTheTransactionItIsIn(t *testing.T) {
	f, disk := newFaulty(t)
	a := f.put("a", "1")
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	var wg sync.WaitGroup
	wg.Go(func() { f.put("first", "x") })
	<-entered
	errs := make([]error, 4)
	queue := func(i int, write func() error) {
		wg.Go(func() { errs[i] = write() })
		require.Eventually(t, func() bool { return f.file.Queued() == i+1 }, time.Minute, 50*time.Microsecond)
	}
	put := func(key string, prev *store.Object) func() error {
		return func() error {
			_, err := f.Put(f.ctx, draft(key, "2"), prev, backend.PutOptions{})
			return err
		}
	}
	queue(0, put("a", a))
	queue(1, put("a", a))
	queue(2, put("b", nil))
	queue(3, put("b", nil))
	close(wait)
	wg.Wait()
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], store.ErrConflict)
	require.NoError(t, errs[2])
	require.ErrorIs(t, errs[3], store.ErrExists)
	rev := f.revision()
	f.reopen(0)
	require.Equal(t, rev, f.revision())
}

func TestWrite_FailsWhenTheDiskIsFull(t *testing.T) {
	f, disk := newFaulty(t)
	a := f.put("a", "1")
	w := f.watch(1, "")
	full := &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}
	for _, write := range []func() error{
		func() error { _, err := f.Put(f.ctx, draft("b", "2"), nil, backend.PutOptions{}); return err },
		func() error {
			_, err := f.Put(f.ctx, draft("a", "2"), a, backend.PutOptions{TTL: time.Hour})
			return err
		},
		func() error { _, err := f.Remove(f.ctx, a); return err },
		func() error { _, err := f.Emit(f.ctx, draft("a", "2")); return err },
	} {
		disk.Add(journaltest.Fault{Err: full})
		err := write()
		require.ErrorIs(t, err, backend.ErrFull)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.False(t, backend.Uncertain(err))
		require.Equal(t, []string{describe(a)}, f.list(backend.ListOptions{}))
		require.Equal(t, a.Revision, f.revision())
	}
	mine := draft("b", "2")
	disk.Add(journaltest.Fault{Err: full})
	_, err := f.Put(f.ctx, mine, nil, backend.PutOptions{TTL: time.Minute})
	require.Error(t, err)
	o, err := f.Put(f.ctx, mine, nil, backend.PutOptions{})
	require.NoError(t, err, "the draft is the caller's again")
	require.Zero(t, o.Expires)
	require.Len(t, w.read(o.Revision, 10), 2)
}

// A draft that was staged and not written is as the caller gave it: a value that carries
// its revision does not come to carry that of another change.
func TestWrite_LeavesADraftThatIsNotWrittenAsItWas(t *testing.T) {
	f, disk := newFaulty(t)
	a := f.put("a", "1")
	for _, failure := range []error{
		&bolt.FullError{Path: f.path, Cause: syscall.ENOSPC},
		&bolt.FailedError{Path: f.path, Uncertain: true, Cause: syscall.EIO}, // the last, since it is final
	} {
		for _, write := range []func(*store.Object) error{
			func(d *store.Object) error {
				_, err := f.Put(f.ctx, d, nil, backend.PutOptions{TTL: time.Hour})
				return err
			},
			func(d *store.Object) error {
				d.Key = "a"
				_, err := f.Put(f.ctx, d, a, backend.PutOptions{TTL: time.Hour})
				return err
			},
			func(d *store.Object) error { _, err := f.Emit(f.ctx, d); return err },
		} {
			given := backendtest.Draft(backendtest.Value{Key: "b", Text: "2", Stamped: true, Revision: 7})
			was := *store.As[backendtest.Item](given)
			disk.Add(journaltest.Fault{Err: failure})
			require.Error(t, write(given))
			was.Key = given.Key
			require.Equal(t, was, *store.As[backendtest.Item](given))
		}
	}
}

// Compactions that wait for one transaction can be in any order: the oldest revision is that of
// the last.
func TestCompact_NeverGoesBack(t *testing.T) {
	f, disk := newFaulty(t)
	f.flicker("a", 80)
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	var wg sync.WaitGroup
	wg.Go(func() { f.put("first", "x") })
	<-entered
	for i, to := range []store.Revision{40, 60, 50} {
		wg.Go(func() {
			if err := f.Compact(f.ctx, to); err != nil {
				t.Error(err)
			}
		})
		require.Eventually(t, func() bool { return f.file.Queued() == i+1 }, time.Minute, time.Millisecond)
	}
	close(wait)
	wg.Wait()
	for range 2 {
		require.Equal(t, store.Revision(60), f.compacted())
		_, err := f.Watch(f.ctx, backend.WatchOptions{From: 55, Notify: func() {}})
		require.ErrorIs(t, err, store.ErrExpired)
		require.Len(t, f.watch(60, "").read(f.revision(), 100), 22)
		f.reopen(0)
	}
}

// After the disk has failed nothing is written; what was durable is served.
func TestWrite_StopsWhenTheDiskFails(t *testing.T) {
	for _, phase := range []journaltest.Phase{journaltest.Before, journaltest.After} {
		f, disk := newFaulty(t)
		a := f.put("a", "1")
		w := f.watch(1, "")
		disk.Add(journaltest.Fault{Phase: phase, Err: &bolt.FailedError{Path: f.path, Uncertain: true, Cause: syscall.EIO}})
		_, err := f.Put(f.ctx, draft("b", "2"), nil, backend.PutOptions{})
		require.ErrorIs(t, err, backend.ErrFailed)
		require.True(t, backend.Uncertain(err))
		_, err = f.Put(f.ctx, draft("c", "3"), nil, backend.PutOptions{})
		require.ErrorIs(t, err, backend.ErrFailed)
		require.ErrorIs(t, err, syscall.EIO)
		require.False(t, backend.Uncertain(err), "this one was not tried")
		require.ErrorIs(t, f.Compact(f.ctx, a.Revision), backend.ErrFailed)

		require.Equal(t, []string{describe(a)}, f.list(backend.ListOptions{}))
		require.Len(t, w.read(a.Revision, 10), 1)
		require.Equal(t, a.Revision, f.revision())
		cold := f.watch(1, "")
		f.emptyWindow()
		require.Len(t, cold.read(a.Revision, 10), 1)
		require.Equal(t, a.Revision, cold.through, "what may be in the file was never acknowledged")
		f.wrap = nil
		f.reopen(0)
		require.Len(t, f.list(backend.ListOptions{}), map[journaltest.Phase]int{journaltest.Before: 1, journaltest.After: 2}[phase])
		f.put("d", "4")
	}
}

// A program learns that the disk has failed without a write of its own, once, and health checks as
// often as they ask.
func TestFile_TellsThatTheDiskHasFailed(t *testing.T) {
	var told []error
	f, disk := newFaulty(t, func(f *fixture) { f.opts.OnError = func(err error) { told = append(told, err) } })
	require.NoError(t, f.file.Failure())
	disk.Add(journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}})
	for _, want := range []error{backend.ErrFull, nil} {
		_, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{})
		require.ErrorIs(t, err, want)
		require.NoError(t, f.file.Failure(), "a full disk is none")
	}
	disk.Add(journaltest.Fault{Err: &bolt.FailedError{Path: f.path, Uncertain: true, Cause: syscall.EIO}})
	for range 3 {
		_, err := f.Put(f.ctx, draft("b", "2"), nil, backend.PutOptions{})
		require.ErrorIs(t, err, backend.ErrFailed)
		require.ErrorIs(t, f.file.Failure(), syscall.EIO)
	}
	require.Len(t, told, 1)
	require.ErrorIs(t, told[0], syscall.EIO)
	f.wrap = nil
	f.reopen(0)
	require.NoError(t, f.file.Failure())
}

// doomed is a journal whose writes fail for good once err is set.
type doomed struct {
	journal.Journal
	err error
}

func (d *doomed) Declare(name string, first uint64) (journal.Bounds, error) {
	if d.err != nil {
		return journal.Bounds{}, d.err
	}
	return d.Journal.Declare(name, first)
}

func (d *doomed) Trim(name string, b journal.Budget) (journal.Trimmed, error) {
	if d.err != nil {
		return journal.Trimmed{}, d.err
	}
	return d.Journal.Trim(name, b)
}

func (d *doomed) Rewrite(name string, entries []journal.Entry) error {
	if d.err != nil {
		return d.err
	}
	return d.Journal.Rewrite(name, entries)
}

// Writes of the file other than a Put report the failure as well.
func TestFile_TellsThatTheDiskHasFailedWithoutAPut(t *testing.T) {
	for name, write := range map[string]func(*fixture) error{
		"a new type": func(f *fixture) error { _, err := bolt.New(f.file, "more", f.cfg); return err },
		"rewriting":  func(f *fixture) error { _, err := f.Rewrite(f.ctx); return err },
		"deleting history": func(f *fixture) error {
			require.NoError(t, f.Compact(f.ctx, f.revision()))
			f.file.Settle()
			return f.file.Failure()
		},
	} {
		var told []error
		disk := &doomed{}
		f := newFixture(t, func(f *fixture) {
			f.opts.OnError = func(err error) { told = append(told, err) }
			f.wrap = func(j journal.Journal) journal.Journal { disk.Journal = j; return disk }
		})
		f.put("a", "1")
		f.close()
		f.cfg.Sealer = sealer(t, 'a')
		f.open()
		disk.err = &bolt.FailedError{Path: f.path, Uncertain: true, Cause: syscall.EIO}
		require.ErrorIs(t, write(f), backend.ErrFailed, name)
		require.ErrorIs(t, f.file.Failure(), syscall.EIO, name)
		require.NotEmpty(t, told, name)
		require.ErrorIs(t, told[0], syscall.EIO, name)
	}
}

// The goroutine that commits the writes of others tells OnError why the disk has failed.
func TestWrite_IsNotAcknowledgedWhenOnErrorEndsItsGoroutine(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.opts.OnError = func(error) { runtime.Goexit() } })
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait}, journaltest.Fault{Err: &journal.FailedError{Path: f.path, Uncertain: true, Cause: syscall.EIO}})
	var wg sync.WaitGroup
	wg.Go(func() { f.put("first", "x") })
	<-entered
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = f.Put(f.ctx, draft(fmt.Sprint("k", i), "x"), nil, backend.PutOptions{}) })
		require.Eventually(t, func() bool { return f.file.Queued() == i+1 }, time.Minute, 50*time.Microsecond)
	}
	close(wait)
	wg.Wait()
	for _, err := range errs {
		require.ErrorIs(t, err, backend.ErrUncertain)
	}
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

// Before it is in a transaction a write can be taken back; after that it waits.
func TestWrite_HonoursTheContext(t *testing.T) {
	f, disk := newFaulty(t)
	entered, wait, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	ctx, cancel := context.WithCancelCause(f.ctx)
	cause := errors.New("enough")
	put := func(key string) {
		_, err := f.Put(ctx, draft(key, "x"), nil, backend.PutOptions{})
		done <- err
	}
	go put("in")
	<-entered
	go put("queued")
	require.Eventually(t, func() bool { return f.file.Queued() == 1 }, time.Minute, time.Millisecond)
	cancel(cause)
	require.ErrorIs(t, <-done, cause)
	close(wait)
	require.NoError(t, <-done)
	require.Len(t, f.list(backend.ListOptions{}), 1)
	for _, call := range []func() error{
		func() error { _, err := f.Get(ctx, "a"); return err },
		func() error { _, err := f.List(ctx, backend.ListOptions{}); return err },
		func() error { _, err := f.Emit(ctx, draft("a", "x")); return err },
		func() error { return f.Compact(ctx, 1) },
	} {
		require.ErrorIs(t, call(), cause)
	}
}
