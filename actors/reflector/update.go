package reflector

import (
	"fmt"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// Kind is the kind of an [Update].
type Kind uint8

const (
	// Replace: Objects are the whole state at Revision and supersede the sink's.
	// It comes first, and again after every relist.
	Replace Kind = iota + 1
	// Changes: Events are all changes since the previous update, up to Revision.
	Changes
	// Progress: there is no change up to Revision, like a bookmark. It also ends
	// an outage after which the watch was resumed; Revision may then be that of
	// the previous update.
	Progress
	// Unavailable: the source cannot be followed for now, because of Err. It is
	// sent once per outage, which ends with the next Replace or Progress.
	Unavailable
)

var kindNames = [...]string{Replace: "Replace", Changes: "Changes", Progress: "Progress", Unavailable: "Unavailable"}

// String returns the kind's name.
func (k Kind) String() string {
	if k >= Replace && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Reason is why a Reflector listed.
type Reason uint8

const (
	// Started: the first list.
	Started Reason = iota + 1
	// Restarted: the Reflector failed and was restarted by its supervisor.
	Restarted
	// Expired: the source no longer had the changes after the last revision.
	Expired
	// Skipped: a batch lacked changes, or held an event that could not be read.
	Skipped
	// Repeated: the source repeated a revision or went back. The list's
	// revision may be smaller than those before it.
	Repeated
	// Future: the source reported that the last revision is in the future, as
	// after a restore from a backup. The list's revision may be smaller than
	// those before it if the source does not know which storage it has.
	Future
	// Stuck: [Config].ResumeAttempts watches in a row delivered nothing.
	Stuck
	// Distrusted: the cached state was found to be wrong; see [Ref.Relist].
	Distrusted
	// Requested: the caller of [Ref.Relist] gave no other reason.
	Requested
	// Restored: the source's storage is another one than that of the last revision,
	// as after a restore from a backup; see backend.StoreID. The list's revision may
	// be smaller than those before it.
	Restored
	// Behind: the source had moved on by more than [Config].ListWhenBehind while there
	// was no watch.
	Behind

	reasons // how many there are, counting zero
)

var reasonNames = [reasons]string{
	Started: "Started", Restarted: "Restarted", Expired: "Expired", Skipped: "Skipped", Repeated: "Repeated",
	Future: "Future", Stuck: "Stuck", Distrusted: "Distrusted", Requested: "Requested", Restored: "Restored",
	Behind: "Behind",
}

// String returns the reason's name, "none" for zero.
func (r Reason) String() string {
	switch {
	case r == 0:
		return "none"
	case r < reasons:
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// mayGoBack reports whether a list for this reason may be accepted even if its revision is
// smaller than that of the last update, of the same storage.
func (r Reason) mayGoBack() bool { return r == Repeated || r == Future || r == Restored }

// Update is what a Reflector offers to its [Sink]. Kind determines which fields
// are set. Slices and objects are shared: read only.
type Update struct {
	Kind Kind
	// Reason is why the state was listed; only for Replace.
	Reason Reason
	// Final: the Reflector has given up and nothing follows; only for
	// Unavailable. See [Config].Permanent.
	Final bool
	// Revision is that of the state (Replace), or the one up to which the sink has
	// received every change (Changes, Progress). A Replace may have a smaller one than the
	// update before it if Reason says so, or if StoreID has changed.
	Revision store.Revision
	// StoreID identifies the storage that the state is of, empty if the source does
	// not know it. If it is another than before, nothing that is known of a revision
	// holds any more, and objects of equal revisions may differ. Only for Replace.
	StoreID string
	// Until, if it is more than Revision, is the revision that the source had when a
	// warm start began: the changes up to it are history, and the sink's state is not
	// the newest one before it has them. Only for Replace; see [Config].WarmStart.
	Until store.Revision
	// Objects is the state in key order; only for Replace, and empty if State is
	// set.
	Objects []*store.Object
	// State, if not nil, is the source's own state at Revision, to be taken over as
	// it is; only for Replace and Changes, and only with [Config].State. Changes
	// without it, from a source that gave it with the Replace, are followed by more,
	// or no more than [Config].StateEvery have come since the last.
	State *tree.View
	// Events is at least one change, in revision order; only for Changes.
	Events []store.Event
	// Err is what went wrong; only for Unavailable.
	Err error
}

// Sink receives the updates of one Reflector, in order.
//
// Offer must not block. It answers [actors.Accepted], or [actors.Full]: then
// the Reflector keeps the update, starts nothing new, and offers it again when
// [Ref.Room] is called. After [actors.Gone] the Reflector stops itself.
type Sink interface {
	Offer(Update) actors.Verdict
}
