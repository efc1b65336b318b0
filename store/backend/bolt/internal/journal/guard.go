package journal

import (
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// contained runs fn, which calls bbolt. bbolt panics on damage, and its memory mapping
// faults if the file was truncated: either becomes a [*CorruptError], and panicked is
// true. It contains nothing that happens in other goroutines.
func contained(path string, fn func() error) (panicked bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			panicked, err = true, &CorruptError{Path: path, Page: NoPage, What: fmt.Sprint(reason)}
		}
	}()
	return false, fn()
}

// guard runs fn, which calls bbolt, unless an earlier call has panicked: bbolt may then
// still hold its locks.
func (f *File) guard(fn func() error) error {
	if broken := f.broken.Load(); broken != nil {
		return *broken
	}
	panicked, err := contained(f.path, fn)
	if panicked {
		f.broken.CompareAndSwap(nil, &err)
	}
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// view runs fn in a read transaction.
func (f *File) view(fn func(tx *bbolt.Tx) error) error {
	return f.guard(func() error { return f.db.View(fn) })
}
