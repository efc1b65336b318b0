package dispatcher

import (
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Message is what the dispatcher takes.
type Message interface{ toDispatcher() }

// Committed says that the watchCache has published a newer snapshot. The
// watchCache sends it; any number collapse into one round.
type Committed struct{}

// Register brings a new watch, at a position that the watchCache has decided.
type Register struct {
	Watch *watcher.Member
	Start watcher.Start
	// Snapshot is what Start was decided on.
	Snapshot *store.Snapshot
	// Reply gets nil once events will reach the watch, or why they will not. It
	// has room for one. If it is nil, the watch ends with that reason.
	Reply chan<- error
}

// Recovered says that a stalled watch has caught up. The watch sends it.
type Recovered struct{ Watch *watcher.Member }

// Ended says that a watch has ended, and its actor has stopped if it had one.
// The watch sends it, once.
type Ended struct{ Watch *watcher.Member }

// Tick is the time for bookmarks. The clock sends it.
type Tick struct{}

// ProgressDue is the time to tell some of the watches that are notified how far
// they have got. The clock sends it.
type ProgressDue struct{}

// BudgetSpent ends the respite that slow watches drew. The clock sends it.
type BudgetSpent struct{}

// DeadlineDue says that some watch's deadline has passed. The clock sends it.
type DeadlineDue struct{}

func (Committed) toDispatcher()   {}
func (Register) toDispatcher()    {}
func (Recovered) toDispatcher()   {}
func (Ended) toDispatcher()       {}
func (Tick) toDispatcher()        {}
func (ProgressDue) toDispatcher() {}
func (BudgetSpent) toDispatcher() {}
func (DeadlineDue) toDispatcher() {}
