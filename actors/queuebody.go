package actors

import "errors"

// queueBody is an actor with a queue, all but what depends on the type of its
// messages: a program has the latter once for each such type, and the more of it
// there is the longer the program takes to compile.
type queueBody struct {
	cell
	gate   *gate // of the inbox
	typed  typed
	onRoom func()
	// The rest belongs to the turn.
	current   any     // the behavior; nil before it is made and after the end
	flusher   Flusher // current, if it is one
	unflushed bool    // messages were received since the last Flush
}

// typed is the rest of it. All its methods are called from turns.
type typed interface {
	// receive hands messages to the behavior until the quota or the inbox is used
	// up, or a system message has come. It reports whether some may be left.
	receive(quota int) (more bool)
	// renew makes a new behavior and returns it. If that panics, or is nil, there
	// is none.
	renew() any
	// drop empties the closed inbox, into the behavior's Dropped if it has one.
	drop()
	// release forgets the behavior and how to make one.
	release()
}

var errNoBehavior = errors.New("actors: make returned a nil Behavior")

// work hands messages to the behavior and, unless a system message has come,
// flushes it.
func (q *queueBody) work(quota int) (more bool) {
	var done bool
	defer contain(&done, q.fail)
	more = true // what holds if the behavior panics
	q.announceRoom()
	left := q.typed.receive(quota)
	q.flush()
	done = true
	return left || q.unflushed
}

// flush ends a batch, unless a system message has come: that goes first, and the
// turn after it flushes.
func (q *queueBody) flush() {
	if q.unflushed && !q.is(notified) {
		q.unflushed = false
		q.flusher.Flush(q.context())
	}
}

func (q *queueBody) announceRoom() {
	if q.gate.roomMade() && q.onRoom != nil {
		q.onRoom()
	}
}

func (q *queueBody) start() {
	q.renew()
	if s, ok := q.current.(Starter); ok {
		s.Started(q.context())
	}
}

// renew replaces the behavior. If make panics there is none.
func (q *queueBody) renew() {
	q.current, q.flusher, q.unflushed = nil, nil, false
	q.current = q.typed.renew()
	if q.current == nil {
		panic(errNoBehavior)
	}
	q.flusher, _ = q.current.(Flusher)
}

func (q *queueBody) behavior() any { return q.current }

func (q *queueBody) restartable() bool { return true }

func (q *queueBody) close() {
	q.unflushed = false // nothing is flushed any more
	q.gate.close()
	if q.gate.wantRoom.Swap(false) && q.onRoom != nil {
		q.guard(q.onRoom)
	}
	q.typed.drop()
}

func (q *queueBody) release() {
	q.current, q.flusher, q.onRoom = nil, nil, nil
	q.typed.release()
}
