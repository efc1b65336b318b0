package reflector

import (
	"fmt"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
)

// Kind says what an [Update] tells.
type Kind uint8

const (
	// Replace: Objects are the whole state at Revision; whatever the sink had
	// is superseded. It comes first, and again after every relist.
	Replace Kind = iota + 1
	// Changes: Events happened, and are all that happened, up to Revision.
	Changes
	// Progress: nothing happened up to Revision. It also tells the end of an
	// outage that a resumed watch has bridged; Revision may then be the one
	// already known.
	Progress
	// Unavailable: the source cannot be followed for now, because of Err. It is
	// told once per outage, which ends with the next Replace or Progress.
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

// Reason says why a Reflector listed.
type Reason uint8

const (
	// Started: the first list.
	Started Reason = iota + 1
	// Restarted: the Reflector failed and was started anew by its supervisor.
	Restarted
	// Expired: the source no longer had the changes after the last revision.
	Expired
	// Skipped: a batch left changes out, or held an event that could not be
	// read.
	Skipped
	// Repeated: the source repeated a revision or went back. The list's
	// revision may be smaller than those before it.
	Repeated
	// Future: the source said that the last revision has not happened yet, as
	// one restored from a backup does. The list's revision may be smaller than
	// those before it.
	Future
	// Stuck: [Config].ResumeAttempts watches in a row brought nothing.
	Stuck
	// Distrusted: somebody found that the mirrored state is wrong; see
	// [Ref.Relist].
	Distrusted
	// Requested: somebody asked for it, for a reason of their own; see
	// [Ref.Relist].
	Requested

	reasons // how many there are, counting zero
)

var reasonNames = [reasons]string{
	Started: "Started", Restarted: "Restarted", Expired: "Expired", Skipped: "Skipped", Repeated: "Repeated",
	Future: "Future", Stuck: "Stuck", Distrusted: "Distrusted", Requested: "Requested",
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

// mayGoBack reports whether a list for this reason is believed even if its
// revision is smaller than what was seen before.
func (r Reason) mayGoBack() bool { return r == Repeated || r == Future }

// Update is one thing that a Reflector tells its [Sink]. Kind says which of
// the fields mean something. Slices and objects are shared: read only.
type Update struct {
	Kind Kind
	// Reason is why the state was listed; only for Replace.
	Reason Reason
	// Final means that the Reflector has given up and nothing follows; only for
	// Unavailable. See [Config].Permanent.
	Final bool
	// Revision is the revision of the state (Replace), or the one up to which
	// everything has been told (Changes, Progress).
	Revision store.Revision
	// Objects is the state in key order; only for Replace, and empty if State is
	// set.
	Objects []*store.Object
	// State, if not nil, is the source's own state at Revision, to be taken over as
	// it is; only for Replace and Changes, and only with [Config].State. Changes
	// without it, from a source that gave it with the Replace, are followed by more.
	State *store.TreeView
	// Events is at least one change, in revision order; only for Changes.
	Events []store.Event
	// Err is what went wrong; only for Unavailable.
	Err error
}

// Sink is told what happened, in order, by one Reflector at a time.
//
// Offer must not block. It answers [actors.Accepted], or [actors.Full]: then
// the Reflector keeps the update, starts nothing new, and offers it again when
// [Ref.Room] is called. After [actors.Gone] the Reflector stops itself.
type Sink interface {
	Offer(Update) actors.Verdict
}
