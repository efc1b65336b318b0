package judge

import (
	"errors"
	"fmt"
)

// Invariant is the name of a condition that must always hold.
type Invariant string

// Conditions of one watch. Selected means: matched by the watch's selection.
const (
	// Ordered: revisions never go down.
	Ordered Invariant = "ordered"
	// Unique: no event comes twice.
	Unique Invariant = "unique"
	// Atomic: each revision is that of one event, and the event's object has it, too.
	Atomic Invariant = "atomic"
	// Reliable: no selected change between two events is missing, unless a mark
	// says so, and all events add up to the state.
	Reliable Invariant = "reliable"
	// Resumable: a watch from a revision has exactly what came after it, even if
	// the revision is the position that another watch reported.
	Resumable Invariant = "resumable"
	// Bookmarkable: everything up to a bookmark was delivered before it, nothing
	// of it after. Only watches that requested bookmarks get them, one right after
	// the initial state.
	Bookmarkable Invariant = "bookmarkable"
	// Filter: only selected changes are delivered, with the type that they have for
	// the selection: Added if the object begins to match, Deleted if it ceases to.
	Filter Invariant = "filter"
	// PrevValue: an event's previous object is the one before the change.
	PrevValue Invariant = "prev-value"
	// IsCreate: an event is Added exactly if the consumer did not have the object.
	IsCreate Invariant = "is-create"
	// Genuine: an event has the object that was written at its revision, and marks that are true.
	Genuine Invariant = "genuine"
	// InitialState: the initial state of a watch is that of one of the revisions at
	// which it may start, in key order.
	InitialState Invariant = "initial-state"
	// Conserved: when a consumer has read everything, every selected event was
	// delivered, or reported as lost by a mark or the watch's end; and the engine's
	// counters account for every watch and every end.
	Conserved Invariant = "conserved"
	// Ends: a watch ends for exactly one of the known reasons, which has occurred, and
	// returns it to its consumer. If one has occurred, the watch ends.
	Ends Invariant = "ends"
)

// Conditions of reads.
const (
	// ReadLatest: it sees every write that was acknowledged before it began.
	ReadLatest Invariant = "read-latest"
	// ReadCached: it is no older than what the cache had reached before.
	ReadCached Invariant = "read-cached"
	// ReadNotOlder: it is at least of the requested revision.
	ReadNotOlder Invariant = "read-not-older"
	// ReadExact: it is of the requested revision.
	ReadExact Invariant = "read-exact"
	// ReadState: it is the state of its revision, in key order.
	ReadState Invariant = "read-state"
)

// Conditions of a whole engine.
const (
	// Acknowledged: a write makes the change that it was asked for, and returns its revision
	// and the object that it has stored. If storage does not answer, it makes that change or none, and
	// says that the outcome is unknown.
	Acknowledged Invariant = "acknowledged"
	// Refusals: a call fails only for a reason that exists.
	Refusals Invariant = "refusals"
	// OneTimeline: a watch, or a page, that continues a list of one history of storage is
	// of that history, or refused.
	OneTimeline Invariant = "one-timeline"
	// Rests: while no time passes and there are no calls, the engine's work comes to an
	// end.
	Rests Invariant = "rests"
	// Expires: a write gives an object the TTL that it was asked to, and storage deletes the
	// objects whose TTL has passed, and no others. That watches and reads show these
	// deletions is part of their own invariants.
	Expires Invariant = "expires"
	// Kept: the engine keeps the events that its window is to keep, and no more of them.
	Kept Invariant = "kept"
	// Recovers: when storage works again, the engine catches up with it.
	Recovers Invariant = "recovers"
	// NothingLeft: no actor and no timer outlives Close.
	NothingLeft Invariant = "nothing-left"
)

// Failure says which invariant does not hold, and where.
type Failure struct {
	Invariant Invariant
	// Where names the watch or the read.
	Where string
	// Event is the index of the watch's event that breaks the invariant; -1 if no
	// single event does.
	Event int
	// Problem describes the violation, in a sentence.
	Problem string
}

func (f *Failure) Error() string {
	switch {
	case f.Where == "":
		return fmt.Sprintf("%s: %s", f.Invariant, f.Problem)
	case f.Event < 0:
		return fmt.Sprintf("%s: %s: %s", f.Invariant, f.Where, f.Problem)
	}
	return fmt.Sprintf("%s: %s, event %d: %s", f.Invariant, f.Where, f.Event, f.Problem)
}

// Broken returns the invariant of the [*Failure] in err; "" if err wraps none.
func Broken(err error) Invariant {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Invariant
	}
	return ""
}

// Failed returns a failure that belongs to no single event.
func Failed(i Invariant, where, format string, args ...any) *Failure {
	return &Failure{Invariant: i, Where: where, Event: -1, Problem: fmt.Sprintf(format, args...)}
}
