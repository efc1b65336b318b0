package dispatcher

import (
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Message is what the dispatcher takes.
type Message[T any] interface{ toDispatcher(T) }

// Committed says that the watchCache has published a newer snapshot. The
// watchCache sends it; any number collapse into one round.
type Committed[T any] struct{}

// Register brings a new watch, at a position that the watchCache has fixed.
type Register[T any] struct {
	Watch *watcher.Watch[T]
	// Filter is what the watch wants; watches with the same one share its
	// evaluation.
	Filter *store.Filter
	Start  watcher.Start[T]
	// Snapshot is what Start was fixed at.
	Snapshot *store.Snapshot[T]
	// OnPool runs the watcher's turns on the pool. A handler that may block must
	// not be there.
	OnPool bool
	// Reply gets nil once events will reach the watch, or why they will not. It
	// has room for one.
	Reply chan<- error
}

// Recovered says that a stalled watch has caught up. The watch sends it.
type Recovered[T any] struct{ Watch *watcher.Watch[T] }

// Tick is the time for bookmarks. The clock sends it.
type Tick[T any] struct{}

// BudgetSpent ends the respite that slow watchers drew. The clock sends it.
type BudgetSpent[T any] struct{}

// DeadlineDue says that some watch's deadline has passed. The clock sends it.
type DeadlineDue[T any] struct{}

func (Committed[T]) toDispatcher(T)   {}
func (Register[T]) toDispatcher(T)    {}
func (Recovered[T]) toDispatcher(T)   {}
func (Tick[T]) toDispatcher(T)        {}
func (BudgetSpent[T]) toDispatcher(T) {}
func (DeadlineDue[T]) toDispatcher(T) {}
