package judge

import (
	"errors"
	"fmt"
)

// Invariant names what must always hold.
type Invariant string

// What must hold of one watch. Selected means: shown by the watch's selection.
const (
	// Ordered: revisions never go down.
	Ordered Invariant = "ordered"
	// Unique: no event comes twice.
	Unique Invariant = "unique"
	// Atomic: one revision is one event, whose object carries that revision.
	Atomic Invariant = "atomic"
	// Reliable: no selected change between two events is missing, unless a mark
	// says so, and applying all events makes the state (rows 154, 156).
	Reliable Invariant = "reliable"
	// Resumable: a watch from a revision has exactly what came after it, also if
	// the revision is where another watch said that its consumer stood.
	Resumable Invariant = "resumable"
	// Bookmarkable: everything up to a bookmark was delivered before it, nothing
	// of it after. Only watches that requested bookmarks get them, one right after
	// the initial state.
	Bookmarkable Invariant = "bookmarkable"
	// Filter: only selected changes are delivered, each as what it is to the
	// selection: added if it came to match, deleted if it ceased to.
	Filter Invariant = "filter"
	// PrevValue: the previous state is the one before the change.
	PrevValue Invariant = "prev-value"
	// IsCreate: an object is added exactly if the consumer did not have it.
	IsCreate Invariant = "is-create"
	// Genuine: what is shown was written, as shown, at that revision.
	Genuine Invariant = "genuine"
	// InitialState: the state that a watch starts with is that of one revision
	// that it may start at, in key order.
	InitialState Invariant = "initial-state"
	// Conserved: when a consumer has read all there is, everything that was
	// published and is selected was delivered, or told as lost by a mark or the
	// watch's end; and the engine's figures account for every watch and every end.
	Conserved Invariant = "conserved"
	// Ends: a watch ends for exactly one reason, which is one of the known ones and
	// has happened, and says so to its consumer. If one has happened, it ends.
	Ends Invariant = "ends"
)

// What must hold of reads.
const (
	// ReadLatest: it sees all that was acknowledged before it began.
	ReadLatest Invariant = "read-latest"
	// ReadCached: it is no older than what the cache had reached before.
	ReadCached Invariant = "read-cached"
	// ReadNotOlder: it is at least of the revision that was asked for.
	ReadNotOlder Invariant = "read-not-older"
	// ReadExact: it is of the revision that was asked for.
	ReadExact Invariant = "read-exact"
	// ReadState: what it shows is, in key order, the state of its revision.
	ReadState Invariant = "read-state"
)

// What must hold of an engine as a whole.
const (
	// Acknowledged: a write returns what it has done: the revision, and the object.
	Acknowledged Invariant = "acknowledged"
	// Refusals: a call fails only for a reason that there is.
	Refusals Invariant = "refusals"
	// Rests: while no time passes and there are no calls, there is an end to
	// the engine's work.
	Rests Invariant = "rests"
	// Expires: storage deletes by itself what has outlived its TTL, and nothing
	// else. That watches and reads show it is for the others to hold.
	Expires Invariant = "expires"
	// Recovers: when storage is well again, the engine catches up with it.
	Recovers Invariant = "recovers"
	// NothingLeft: no actor and no timer outlives Close.
	NothingLeft Invariant = "nothing-left"
)

// Failure says which invariant does not hold, and of what.
type Failure struct {
	Invariant Invariant
	// Where names the watch or the read.
	Where string
	// Event is the index of the event of a watch that shows it; -1 if none does.
	Event int
	// Problem is what is wrong, as a sentence.
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

// Broken returns the invariant that err says is broken; "" if it says nothing of
// the kind.
func Broken(err error) Invariant {
	var f *Failure
	if errors.As(err, &f) {
		return f.Invariant
	}
	return ""
}

// Failed makes a failure that no event shows.
func Failed(i Invariant, where, format string, args ...any) *Failure {
	return &Failure{Invariant: i, Where: where, Event: -1, Problem: fmt.Sprintf(format, args...)}
}
