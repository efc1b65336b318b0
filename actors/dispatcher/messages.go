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

// Register brings a new watch, at a position that the watchCache has fixed.
type Register struct {
	Watch *watcher.Watch
	// Filter is what the watch wants; watches with the same one share its
	// evaluation.
	Filter *store.Filter
	Start  watcher.Start
	// Snapshot is what Start was fixed at.
	Snapshot *store.Snapshot
	// OnPool runs the watcher's turns on the pool. A handler that may block must
	// not be there.
	OnPool bool
	// Reply gets nil once events will reach the watch, or why they will not. It
	// has room for one.
	Reply chan<- error
}

// Recovered says that a stalled watch has caught up. The watch sends it.
type Recovered struct{ Watch *watcher.Watch }

// Tick is the time for bookmarks. The clock sends it.
type Tick struct{}

// BudgetSpent ends the respite that slow watchers drew. The clock sends it.
type BudgetSpent struct{}

// DeadlineDue says that some watch's deadline has passed. The clock sends it.
type DeadlineDue struct{}

func (Committed) toDispatcher()   {}
func (Register) toDispatcher()    {}
func (Recovered) toDispatcher()   {}
func (Tick) toDispatcher()        {}
func (BudgetSpent) toDispatcher() {}
func (DeadlineDue) toDispatcher() {}
