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

// Register starts a watch where its options say. Watch callers send it.
type Register struct {
	Watch *watcher.Watch
	// Reply gets nil once events will reach the watch, or why they will not: a
	// [*NotReadyError] or a [*store.ExpiredError]. It has room for one.
	//
	// If it is nil, the watch waits until the cache is ready, and ends with the
	// reason if events will not reach it.
	Reply chan<- error
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
