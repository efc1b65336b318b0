package bolt

import (
	"errors"
	"sync/atomic"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// failureRecorder is a journal that remembers the write at which the disk has failed.
type failureRecorder struct {
	journal.Journal
	failure atomic.Pointer[FailedError]
	// onFailure is called once, with the failure.
	onFailure func(error)
}

// recordFailure remembers the error of a write, if it is the first after which nothing is written any
// more.
func (j *failureRecorder) recordFailure(err error) {
	var failed *FailedError
	if errors.As(err, &failed) && j.failure.CompareAndSwap(nil, failed) {
		j.onFailure(failed)
	}
}

func (j *failureRecorder) Declare(name string, first uint64) (journal.Bounds, error) {
	b, err := j.Journal.Declare(name, first)
	j.recordFailure(err)
	return b, err
}

func (j *failureRecorder) Append(b journal.Batch) error {
	err := j.Journal.Append(b)
	j.recordFailure(err)
	return err
}

func (j *failureRecorder) Trim(name string, b journal.Budget) (journal.Trimmed, error) {
	t, err := j.Journal.Trim(name, b)
	j.recordFailure(err)
	return t, err
}

func (j *failureRecorder) Rewrite(name string, entries []journal.Entry) error {
	err := j.Journal.Rewrite(name, entries)
	j.recordFailure(err)
	return err
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
