package bolt

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// failureRecorder is a journal that remembers the write at which the disk has failed.
type failureRecorder struct {
	journal.Journal
	// writes is locked for reading during each write, and by the goroutine that closes the journal: it waits for
	// writes there, so that what waits for it can go on without it.
	writes  sync.RWMutex
	failure atomic.Pointer[FailedError]
	// onFailure is called once, with the failure.
	onFailure func(error)
}

// write makes a write, and remembers its failure.
func (j *failureRecorder) write(fn func() error) error {
	err := j.locked(fn)
	j.recordFailure(err)
	return err
}

func (j *failureRecorder) locked(fn func() error) error {
	j.writes.RLock()
	defer j.writes.RUnlock()
	return fn()
}

// recordFailure remembers the error of a write, if it is the first after which nothing is written any
// more.
func (j *failureRecorder) recordFailure(err error) {
	var failed *FailedError
	if errors.As(err, &failed) && j.failure.CompareAndSwap(nil, failed) {
		j.onFailure(failed)
	}
}

func (j *failureRecorder) Declare(name string, first uint64) (b journal.Bounds, err error) {
	err = j.write(func() (err error) {
		b, err = j.Journal.Declare(name, first)
		return err
	})
	return b, err
}

func (j *failureRecorder) Append(b journal.Batch) error {
	return j.write(func() error { return j.Journal.Append(b) })
}

func (j *failureRecorder) Trim(name string, b journal.Budget) (t journal.Trimmed, err error) {
	err = j.write(func() (err error) {
		t, err = j.Journal.Trim(name, b)
		return err
	})
	return t, err
}

func (j *failureRecorder) Rewrite(name string, entries []journal.Entry) error {
	return j.write(func() error { return j.Journal.Rewrite(name, entries) })
}

// Failure returns the [*FailedError] of the write at which the disk has failed, after which
// nothing is written any more until the file is opened again; nil as long as the file can be
// written. A full disk is not a failure. It does not block, so health checks may call it.
func (f *File) Failure() error {
	if failed := f.journal.failure.Load(); failed != nil {
		return failed
	}
	return nil
}
