package reflector

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store"
)

// Errors of a source, besides those of package store. They are passed to
// [Config].OnError and appear in [Update].Err and [Stats].LastError.
var (
	// ErrLost: a watch skipped changes, repeated some or went back. The error
	// is a [*LostError].
	ErrLost = errors.New("watch skipped or repeated revisions")
	// ErrTornList: the pages of a list do not form one consistent state. The
	// error is a [*TornListError].
	ErrTornList = errors.New("list is inconsistent")
	// ErrWentBack: a list is older than an update delivered before. The error is
	// a [*WentBackError].
	ErrWentBack = errors.New("source went back in time")
	// ErrOtherStorage: a watch is of another storage than the state before it. The
	// error is an [*OtherStorageError].
	ErrOtherStorage = errors.New("source has another storage")
	// ErrTimeout: a call to the source took longer than [Config].CallTimeout.
	ErrTimeout = errors.New("call to the source timed out")
	// ErrContract: the source returned neither a result nor an error.
	ErrContract = errors.New("source returned neither a result nor an error")
)

// LostError says where a watch skipped or repeated revisions.
type LostError struct {
	// Reason is [Skipped] or [Repeated].
	Reason Reason
	// Last is the last valid revision.
	Last store.Revision
	// Found is the revision that cannot follow it.
	Found store.Revision
	// Detail says which rule is broken.
	Detail string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("watch skipped or repeated revisions: after revision %d: %s (%d): listing again", e.Last, e.Detail, e.Found)
}

// Is makes errors.Is(err, ErrLost) true.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// TornListError says why the pages of a list do not fit together.
type TornListError struct {
	// Want is the first page's revision, Got that of the page in question.
	Want, Got store.Revision
	// Detail says which rule is broken.
	Detail string
}

func (e *TornListError) Error() string {
	return fmt.Sprintf("list is inconsistent: %s (first page at revision %d, this one at %d): listing again", e.Detail, e.Want, e.Got)
}

// Is makes errors.Is(err, ErrTornList) true.
func (e *TornListError) Is(target error) bool { return target == ErrTornList }

// OtherStorageError says that a watch is of another storage than the state that it
// was to continue, as when storage was restored from a backup.
type OtherStorageError struct {
	// Revision is where the watch was to start.
	Revision store.Revision
	// Before and Now are the identities of the storage of the state and of the watch; see
	// backend.StoreID.
	Before, Now string
}

func (e *OtherStorageError) Error() string {
	return fmt.Sprintf("source has another storage: revision %d is of %q, the watch from there is of %q: listing again", e.Revision, e.Before, e.Now)
}

// Is makes errors.Is(err, ErrOtherStorage) true.
func (e *OtherStorageError) Is(target error) bool { return target == ErrOtherStorage }

// WentBackError says that a list was older than an update seen before: the
// source is a stale replica, or was restored from a backup. The next list is
// accepted whatever its revision.
type WentBackError struct {
	// Last is the revision seen before, Listed that of the list.
	Last, Listed store.Revision
}

func (e *WentBackError) Error() string {
	return fmt.Sprintf("source went back in time: list at revision %d after revision %d was seen: listing once more before accepting it", e.Listed, e.Last)
}

// Is makes errors.Is(err, ErrWentBack) true.
func (e *WentBackError) Is(target error) bool { return target == ErrWentBack }
