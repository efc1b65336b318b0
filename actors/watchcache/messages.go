package watchcache

import (
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Message is what the watchCache receives besides updates of the Reflector.
type Message interface{ toWatchCache() }

// envelope is an element of the mailbox. An update is not a [Message], since there is one
// for each event that comes alone, and the interface would cost it an allocation.
type envelope struct {
	// message is nil if the element is an update.
	message Message
	update  reflector.Update
}

// Register starts a watch at the position its options ask for.
type Register struct {
	Watch *watcher.Watch
	// Filter selects its events; nil selects everything. Watches with the same filter
	// share its evaluation.
	Filter *store.Filter
	// From is where it starts.
	From watcher.From
	// Deadline is when it ends.
	Deadline watcher.Deadline
	// Timeline, if not nil, is that of the revision at which the watch starts: in any
	// other the watch is refused with a [*store.ExpiredError].
	Timeline *store.Timeline
	// Reply receives nil once the watch is registered, otherwise a
	// [*NotReadyError] or a [*store.ExpiredError]. It has room for one.
	//
	// If it is nil, the registration waits until the cache is ready, and an
	// error ends the watch, as does a source that ends for good.
	Reply chan<- error
}

// Wait waits until the cache is ready and has reached Revision.
type Wait struct {
	Revision store.Revision
	// Until is when to give up, with a [*store.FutureError] or
	// [*NotReadyError]. If the source ends for good, it gives up at once.
	Until time.Time
	// Done is closed when the caller does not wait any more; nil means that it waits until
	// Until.
	Done <-chan struct{}
	// Reply receives nil or the error. It has room for one.
	Reply chan<- error
}

// Distrust reports a wrong state. The engine's comparison with the backend sends
// it.
type Distrust struct {
	// Cause is the cause of the cache's NotReadyError until the list; an
	// [ErrInconsistent].
	Cause error
	// Reply receives nil once the cache is Pending, or [ErrStopped]. It has room
	// for one.
	Reply chan<- error
}

// Compact discards the history before Revision, after storage has discarded it. The
// engine sends it.
type Compact struct {
	Revision store.Revision
	// Reply receives nil once reads and new watches that go back further are
	// refused, or [ErrStopped]. It has room for one.
	Reply chan<- error
}

// trimDue is the time to trim the window. The clock sends it.
type trimDue struct{}

// waiterDue says that a waiter has timed out. The clock sends it.
type waiterDue struct{}

func (Register) toWatchCache()  {}
func (Wait) toWatchCache()      {}
func (Distrust) toWatchCache()  {}
func (Compact) toWatchCache()   {}
func (trimDue) toWatchCache()   {}
func (waiterDue) toWatchCache() {}
