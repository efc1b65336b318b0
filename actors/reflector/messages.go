package reflector

import (
	"context"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store/backend"
)

// message is what a Reflector receives.
//
//	message          sent by
//	begin            Spawn; the Reflector itself when it is restarted
//	answer           the caller: a call to the source has returned
//	pull             the source's Notify; the Reflector itself, to yield between batches
//	wake             the clock: a delay is over
//	overdue          the clock: a call takes too long
//	room             Ref.Room: the sink has room
//	relist           Ref.Relist
//	wantProgress     Ref.RequestProgress, and a timer while calls wait
//	repeatProgress   the caller: a request for progress has returned, and there was another meanwhile
type message interface{ message() }

// begin starts the work.
type begin struct{ why Reason }

// answer is the result of a request.
type answer struct {
	request uint64
	page    *backend.List   // of a list
	watcher backend.Watcher // of a watch
	// storeID identifies the storage of a page or a watch. Empty if the source does not
	// know it, and for pages in the middle of a list that do not say.
	storeID string
	err     error
}

// pull says that the watch of that notifier may have something.
type pull struct{ notifier *notifier }

// wake says that the delay with that number is over.
type wake struct{ delay uint64 }

// overdue says that the request with that number has timed out.
type overdue struct{ request uint64 }

// room says that the sink has room.
type room struct{}

// relist asks for a list.
type relist struct{ why Reason }

// wantProgress says that calls wait for the progress of the watch.
type wantProgress struct{}

// repeatProgress requests progress of the watch whether or not calls wait: the request that was to be
// made meanwhile may be for the Reflector itself, which starts warm.
type repeatProgress struct{}

func (begin) message()          {}
func (answer) message()         {}
func (pull) message()           {}
func (wake) message()           {}
func (overdue) message()        {}
func (room) message()           {}
func (relist) message()         {}
func (wantProgress) message()   {}
func (repeatProgress) message() {}

// request is the caller's message: one call to the source.
type request struct {
	id   uint64
	ctx  context.Context
	do   action // doList or doOpen
	list backend.ListOptions
	from backend.WatchOptions
}

// notifier turns any number of notifications of one watch into one message.
type notifier struct {
	pending   atomic.Bool
	reflector *actors.Ref[message]
}

// notify may be called from any goroutine and never blocks.
func (n *notifier) notify() {
	if n.pending.CompareAndSwap(false, true) {
		n.reflector.Tell(pull{n})
	}
}
