package dispatcher

import (
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// Message is what the dispatcher receives.
type Message interface{ toDispatcher() }

// Committed says that the watchCache has published a newer snapshot. The watchCache
// sends it; any number are handled by one round.
type Committed struct{}

// Register adds a watch at a position of a published snapshot.
type Register struct {
	Watch *watcher.Member
	// Filter selects its events; nil selects everything.
	Filter *store.Filter
	Start  watcher.Start
	// Deadline is when the watch ends.
	Deadline watcher.Deadline
	// Now: it may start later than at Start, with the state of that time if Start has one,
	// as it must if the window has moved past Start.
	Now bool
	// AnyEpoch: it was given no revision, so that it may also start in another epoch, with Now.
	AnyEpoch bool
	// Resumes: it starts after a revision that it was given, which is counted.
	Resumes bool
	// Snapshot is the one for which Start was decided.
	Snapshot *window.Snapshot
	// Reply receives nil once the watch is registered, otherwise the error. It has
	// room for one. If it is nil, an error ends the watch.
	Reply chan<- error
}

func (m Register) answer(err error) { answer(m.Reply, err) }

// Drain ends every watch with Reason as soon as it has been given all that was
// committed before, and those that are registered later likewise. The engine sends
// it, and the watchCache when storage has ended for good.
type Drain struct {
	Reason error
	// Reply gets nil once all that was committed before has been dispatched. It has
	// room for one. If it is nil, there is no answer.
	Reply chan<- error
}

func (m Drain) answer(err error) { answer(m.Reply, err) }

// answer sends err to a call, if one waits.
func answer(reply chan<- error, err error) {
	if reply != nil {
		reply <- err
	}
}

// Recovered says that a stalled watch has caught up. The watch sends it.
type Recovered struct{ Watch *watcher.Member }

// Ended says that a watch has ended, and its actor has stopped if it had one.
// The watch sends it, once.
type Ended struct{ Watch *watcher.Member }

// bookmarksDue is the time to look which bookmarks are due. The clock sends it.
type bookmarksDue struct{}

// progressDue is the time to notify the next share of notified watches of their
// progress. The clock sends it.
type progressDue struct{}

// budgetSpent says that the slow watches' budget is used up. The clock sends it.
type budgetSpent struct{}

// deadlineDue says that a watch's deadline has passed. The clock sends it.
type deadlineDue struct{}

func (Committed) toDispatcher()    {}
func (Register) toDispatcher()     {}
func (Drain) toDispatcher()        {}
func (Recovered) toDispatcher()    {}
func (Ended) toDispatcher()        {}
func (bookmarksDue) toDispatcher() {}
func (progressDue) toDispatcher()  {}
func (budgetSpent) toDispatcher()  {}
func (deadlineDue) toDispatcher()  {}
