package watchcache

import (
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Message is what the watchCache takes.
type Message interface{ toWatchCache() }

// Upstream is what the Reflector tells, in order. It is offered: a full mailbox
// holds the Reflector back.
type Upstream struct{ reflector.Update }

// Register starts a watch. Watch callers send it.
type Register struct {
	Watch  *watcher.Watch
	Filter *store.Filter
	From   From
	// OnPool runs the watcher's turns on the pool.
	OnPool bool
	// Reply gets nil once events will reach the watch, or why they will not: a
	// [*NotReadyError] or a [*store.ExpiredError]. It has room for one.
	Reply chan<- error
}

// From is where a watch starts. The zero value starts now.
type From struct {
	// Revision starts after it; in the future, too.
	Revision store.Revision
	// State starts with the state, as Added events, then goes on.
	State bool
	// InitialEnd closes the state with a bookmark.
	InitialEnd bool
	// Last starts with as many of the newest events in the window.
	Last int
}

// Wait asks to be told when the cache is ready and has reached Revision.
type Wait struct {
	Revision store.Revision
	// Until is when to give up, with a [*store.FutureError] or
	// [*NotReadyError].
	Until time.Time
	// Reply gets nil or why not. It has room for one.
	Reply chan<- error
}

// Distrust says that the state was found to be wrong. The engine's comparison
// with the backend sends it.
type Distrust struct {
	// Cause is what the cache says while it is not ready for that; an
	// [ErrInconsistent].
	Cause error
	// Reply gets nil once the cache is distrusted, or [ErrStopped]. It has room
	// for one.
	Reply chan<- error
}

// Tick is the time to trim the window. The clock sends it.
type Tick struct{}

// WaitsDue says that some waiter's time is up. The clock sends it.
type WaitsDue struct{}

func (Upstream) toWatchCache() {}
func (Register) toWatchCache() {}
func (Wait) toWatchCache()     {}
func (Distrust) toWatchCache() {}
func (Tick) toWatchCache()     {}
func (WaitsDue) toWatchCache() {}
