package reflector

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store"
)

// What can be wrong with a source beside what package store names. They go to
// [Config].OnError and into [Update].Err and [Stats].LastError.
var (
	// ErrLost: a watch left changes out, repeated some or went back. The error
	// is a [*LostError].
	ErrLost = errors.New("watch is not what happened")
	// ErrTornList: the pages of a list do not make one state. The error is a
	// [*TornListError].
	ErrTornList = errors.New("list is not one state")
	// ErrWentBack: a list is older than what the source has already told. The
	// error is a [*WentBackError].
	ErrWentBack = errors.New("source went back in time")
	// ErrTimeout: a call to the source took longer than [Config].CallTimeout.
	ErrTimeout = errors.New("call to the source timed out")
	// ErrContract: the source returned neither a result nor an error.
	ErrContract = errors.New("source returned neither a result nor an error")
)

// LostError says where a watch stopped being what happened.
type LostError struct {
	// Reason is [Skipped] or [Repeated].
	Reason Reason
	// Last is the last revision that was right.
	Last store.Revision
	// Found is the revision that does not fit behind it.
	Found store.Revision
	// Detail says which rule it breaks.
	Detail string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("watch is not what happened: after revision %d: %s (%d): listing again", e.Last, e.Detail, e.Found)
}

// Is makes errors.Is(err, ErrLost) true.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// TornListError says why the pages of a list do not fit together.
type TornListError struct {
	// Want is the first page's revision, Got that of the page in question.
	Want, Got store.Revision
	// Detail says which rule the page breaks.
	Detail string
}

func (e *TornListError) Error() string {
	return fmt.Sprintf("list is not one state: %s (first page at revision %d, this one at %d): listing again", e.Detail, e.Want, e.Got)
}

// Is makes errors.Is(err, ErrTornList) true.
func (e *TornListError) Is(target error) bool { return target == ErrTornList }

// WentBackError says that a list was older than what had been seen: a stale
// replica, or storage restored from a backup. The next list is believed.
type WentBackError struct {
	// Last is the revision seen before, Listed that of the list.
	Last, Listed store.Revision
}

func (e *WentBackError) Error() string {
	return fmt.Sprintf("source went back in time: list at revision %d after revision %d was seen: listing once more before believing it", e.Listed, e.Last)
}

// Is makes errors.Is(err, ErrWentBack) true.
func (e *WentBackError) Is(target error) bool { return target == ErrWentBack }
