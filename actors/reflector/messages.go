package reflector

import (
	"context"
	"sync/atomic"

	"github.com/watchmill/watchmill/store/backend"
)

// message is what a Reflector takes.
//
//	message    sent by
//	begin      Spawn; the Reflector itself when it is restarted
//	answer     the caller: a call to the source has returned
//	pull       the source's Notify; the Reflector itself, to make way for others
//	wake       the clock: a delay is over
//	overdue    the clock: a call takes too long
//	room       Ref.Room: the sink can take something
//	relist     Ref.Relist
type message interface{ message() }

// begin starts the work.
type begin struct{ why Reason }

// answer is what became of a request.
type answer struct {
	request uint64
	page    *backend.List   // of a list
	watcher backend.Watcher // of a watch
	err     error
}

// pull says that the watch of that bell may have something.
type pull struct{ bell *bell }

// wake says that the delay of that number is over.
type wake struct{ delay uint64 }

// overdue says that the request of that number has had its time.
type overdue struct{ request uint64 }

// room says that the sink has room.
type room struct{}

// relist asks for a list.
type relist struct{ why Reason }

func (begin) message()   {}
func (answer) message()  {}
func (pull) message()    {}
func (wake) message()    {}
func (overdue) message() {}
func (room) message()    {}
func (relist) message()  {}

// request is what the caller takes: one call to the source.
type request struct {
	id   uint64
	ctx  context.Context
	do   deed // doList or doOpen
	list backend.ListOptions
	from backend.WatchOptions
}

// bell turns any number of notifications of one watch into one message.
type bell struct {
	rung atomic.Bool
	send func(pull) bool
}

// newBell returns a bell that rings for the Reflector.
func newBell(h *Ref) *bell {
	return &bell{send: func(p pull) bool { return h.actor.Tell(p) }}
}

// ring may be called from any goroutine and never blocks.
func (b *bell) ring() {
	if b.rung.CompareAndSwap(false, true) {
		b.send(pull{b})
	}
}
