package reflector

import (
	"fmt"
	"strings"
	"time"

	"github.com/watchmill/watchmill/store"
)

// Phase is what a Reflector is doing.
type Phase uint8

const (
	// Idle: not started.
	Idle Phase = iota
	// Listing: fetching a page of a list.
	Listing
	// Opening: opening a watch.
	Opening
	// Watching: following a watch.
	Watching
	// Waiting: waiting for the backoff's delay, or for room in the sink, before
	// the next attempt.
	Waiting
	// Ended: stopped, or given up.
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

// Relists are counters, one for each [Reason].
type Relists [reasons]uint64

// String names the reasons that there were, as in "{Started:1 Expired:2}".
func (r Relists) String() string {
	var names []string
	for why, n := range r {
		if n > 0 {
			names = append(names, fmt.Sprintf("%v:%d", Reason(why), n))
		}
	}
	return "{" + strings.Join(names, " ") + "}"
}

// Stats counts what a Reflector has done since it was spawned, across restarts,
// and holds its current state. It is a consistent snapshot.
type Stats struct {
	// Phase is the current activity.
	Phase Phase
	// Full: the sink was full, and an update is held.
	Full bool
	// Revision is that of the last update offered or about to be offered.
	Revision store.Revision
	// Lists counts lists started, Pages the pages fetched, Watches the watches
	// requested.
	Lists, Pages, Watches uint64
	// Relists counts the times that a list became necessary, by [Reason], the first among them.
	Relists Relists
	// Batches and Events count what was taken from watches.
	Batches, Events uint64
	// Errors counts the errors passed to Config.OnError.
	Errors uint64
	// Skipped counts losses found, Repeated the times that the source repeated
	// a revision or went back; see [LostError] and [WentBackError].
	Skipped, Repeated uint64
	// Outages counts the Unavailable updates, Failures the failed attempts to list or to
	// watch that led to one, or came while one was in force.
	Outages, Failures uint64
	// Restarts counts failures of the Reflector itself.
	Restarts uint64
	// Attempts is the number of backoff delays since the source was last
	// healthy, Delay the last of them.
	Attempts int
	Delay    time.Duration
	// LastError is the last error passed to Config.OnError; nil if none.
	LastError error
}
