package journal

import (
	"errors"
	"fmt"
	"strings"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// The errors of a journal, for [errors.Is]. Those that reach users are package backend's,
// under the same names.
var (
	// ErrFull: there is no space for a write, on the disk or by Options.MaxBytes.
	// Nothing has changed, and writes succeed again when there is space.
	ErrFull = backend.ErrFull
	// ErrFailed: the disk failed while something was written. Nothing is written
	// any more until the file is opened again.
	ErrFailed = backend.ErrFailed
	// ErrLocked: the file is open elsewhere.
	ErrLocked = backend.ErrLocked
	// ErrReadOnly: the file was opened for reading.
	ErrReadOnly = backend.ErrReadOnly
	// ErrCorrupt: the file is damaged.
	ErrCorrupt = backend.ErrCorrupt
	// ErrFormat: the file has an unknown layout, or is a snapshot that is to be written to.
	ErrFormat = errors.New("unknown file format")
	// ErrClosed: the journal was closed.
	ErrClosed = store.ErrClosed
	// ErrTimeout: an operation took longer than its timeout.
	ErrTimeout = errors.New("timed out")
	// ErrUnknownLog: there is no log of that name.
	ErrUnknownLog = errors.New("unknown log")
)

// FullError says which file has no space.
type FullError struct {
	Path  string
	Cause error
}

func (e *FullError) Error() string {
	if errors.Is(e.Cause, berrors.ErrMaxSizeReached) {
		return fmt.Sprintf("%s: the file has reached its largest size: nothing was written; raise MaxBytes, or keep less history: %v", e.Path, e.Cause)
	}
	return fmt.Sprintf("%s: no space left: nothing was written; free some: %v", e.Path, e.Cause)
}

// Is makes errors.Is(err, ErrFull) true.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// Unwrap returns Cause: syscall.ENOSPC, EDQUOT or EFBIG, or bbolt's.
func (e *FullError) Unwrap() error { return e.Cause }

// FailedError has the disk's error.
type FailedError struct {
	Path string
	// Uncertain: the file may have the write that failed when it is opened again.
	// Otherwise it does not have it.
	Uncertain bool
	Cause     error
}

func (e *FailedError) Error() string {
	outcome := "nothing was written"
	if e.Uncertain {
		outcome = "whether it was written is unknown"
	}
	return fmt.Sprintf("%s: writing failed, so nothing is written any more: %s; close the file, check the disk, and open it again: %v", e.Path, outcome, e.Cause)
}

// Is makes errors.Is true for ErrFailed and, if Uncertain, for [backend.ErrUncertain].
func (e *FailedError) Is(target error) bool {
	return target == ErrFailed || e.Uncertain && target == backend.ErrUncertain
}

// Unwrap returns Cause.
func (e *FailedError) Unwrap() error { return e.Cause }

// LockedError says which file is open elsewhere. [Options].LockTimeout is how long to wait.
type LockedError struct {
	Path string
	// Here: this process has it open.
	Here bool
	// Waited is how long the lock was waited for.
	Waited time.Duration
}

func (e *LockedError) Error() string {
	holder := "another process"
	if e.Here {
		holder = "this process"
	}
	return fmt.Sprintf("%s is locked: %s has had it open for the last %v: close it there first", e.Path, holder, e.Waited)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// UnsupportedError says on which System files cannot be used.
type UnsupportedError struct {
	// System is its name, as in [runtime.GOOS].
	System string
}

func (e *UnsupportedError) Error() string {
	return "files of objects are not supported on " + e.System + ": use Linux, macOS or a BSD, or keep the objects in memory or in etcd"
}

// Is makes errors.Is(err, [errors.ErrUnsupported]) true.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// ReadOnlyError says which file was opened for reading.
type ReadOnlyError struct{ Path string }

func (e *ReadOnlyError) Error() string {
	return e.Path + " was opened with ReadOnly: open it without ReadOnly to write"
}

// Is makes errors.Is(err, ErrReadOnly) true.
func (e *ReadOnlyError) Is(target error) bool { return target == ErrReadOnly }

// NoPage is the CorruptError.Page of damage that is on no single page.
const NoPage = -1

// CorruptError says where a file is damaged.
type CorruptError struct {
	Path string
	// Page is the number of the damaged page, or [NoPage].
	Page int64
	// Log and Revision name the damaged record; zero if the damage is elsewhere.
	Log      string
	Revision uint64
	// What says what is wrong.
	What string

	// foreign: it may as well be a file of another program.
	foreign bool
}

func (e *CorruptError) Error() string {
	if e.foreign {
		return e.Path + " does not begin like a file of objects: give the path of one, or, if its beginning was lost, restore a snapshot"
	}
	var where strings.Builder
	where.WriteString(e.Path)
	if e.Page >= 0 {
		fmt.Fprintf(&where, ", page %d", e.Page)
	}
	if e.Log != "" {
		fmt.Fprintf(&where, ", log %q", e.Log)
	}
	if e.Revision != 0 {
		fmt.Fprintf(&where, ", revision %d", e.Revision)
	}
	return where.String() + ": damaged: " + e.What
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// FormatError says which unknown format a file has, or that it is a snapshot.
type FormatError struct {
	Path string
	// Format is the version of the layout, zero if another program made the file.
	Format uint64
	// Snapshot: it is a snapshot, which can only be read.
	Snapshot bool
}

func (e *FormatError) Error() string {
	switch {
	case e.Snapshot:
		return e.Path + " is a snapshot, which cannot be written to: restore it, and open the restored file"
	case e.Format == 0:
		return e.Path + " is a bbolt file, but not one that watchmill made: give another path"
	}
	return fmt.Sprintf("%s has format %d, and only %d is known: use a newer version of watchmill", e.Path, e.Format, Format)
}

// Is makes errors.Is(err, ErrFormat) true.
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// TooLargeError says how large a record is, and how large it may be.
type TooLargeError = backend.TooLargeError
