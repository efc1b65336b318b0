package reflector

import (
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
)

// Phase is what a Reflector is doing.
type Phase uint8

const (
	// Idle: it has not begun.
	Idle Phase = iota
	// Listing: it fetches a page of a list.
	Listing
	// Opening: it opens a watch.
	Opening
	// Watching: it follows a watch.
	Watching
	// Waiting: it waits for the time of its next attempt, or for room in the
	// sink before it.
	Waiting
	// Ended: it has given up or was stopped.
	Ended
)

var phaseNames = [...]string{"idle", "listing", "opening", "watching", "waiting", "ended"}

// String returns the phase's name in lower case.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// Stats says what a Reflector has done since it was spawned, through all
// restarts, and where it stands. The numbers of one Stats belong together.
type Stats struct {
	// Phase is what it is doing.
	Phase Phase
	// Full says that it holds an update that the sink had no room for.
	Full bool
	// Revision is the last one that the sink was told of, or is about to be.
	Revision store.Revision
	// Lists counts lists begun, Pages the pages fetched, Watches the watches
	// asked for.
	Lists, Pages, Watches uint64
	// Relists counts the times that a list became necessary, by [Reason].
	Relists [reasons]uint64
	// Batches and Events count what was taken from watches.
	Batches, Events uint64
	// Errors counts what Config.OnError was told.
	Errors uint64
	// Skipped counts losses found, Repeated the times that the source repeated
	// a revision or went back; see [LostError] and [WentBackError].
	Skipped, Repeated uint64
	// Outages counts the Unavailables told.
	Outages uint64
	// Restarts counts failures of the Reflector itself.
	Restarts uint64
	// Attempts is how many delays were waited for since the source was last
	// healthy, Delay the last of them.
	Attempts int
	Delay    time.Duration
	// LastError is the last one that Config.OnError was told; nil if none.
	LastError error
}
