package actors

import "errors"

// queueBody is the face of a Ref that its cell sees.
type queueBody[M any] Ref[M]

var errNoBehavior = errors.New("actors: make returned a nil Behavior")

// work hands messages to the behavior until the quota or the queue is used up,
// or a system message has come.
func (q *queueBody[M]) work(quota int) (more bool) {
	var done bool
	defer contain(&done, q.fail)
	more = true // what holds if the behavior panics
	q.announceRoom()
	ctx := q.context()
	for range quota {
		if q.is(notified) {
			done = true
			return true
		}
		m, ok := q.inbox.next()
		if !ok {
			more = false
			break
		}
		q.unflushed = q.flusher != nil
		q.current.Receive(ctx, m)
		q.announceRoom()
	}
	q.flush(ctx)
	done = true
	return more || q.unflushed
}

// flush ends a batch, unless a system message has come: that goes first, and the
// turn after it flushes.
func (q *queueBody[M]) flush(ctx *Context) {
	if q.unflushed && !q.is(notified) {
		q.unflushed = false
		q.flusher.Flush(ctx)
	}
}

func (q *queueBody[M]) announceRoom() {
	if q.inbox.roomMade() && q.onRoom != nil {
		q.onRoom()
	}
}

func (q *queueBody[M]) start() {
	q.renew()
	if s, ok := q.current.(Starter); ok {
		s.Started(q.context())
	}
}

// renew replaces the behavior. If make panics there is none.
func (q *queueBody[M]) renew() {
	q.current, q.flusher, q.unflushed = nil, nil, false
	b := q.make()
	if b == nil {
		panic(errNoBehavior)
	}
	q.current = b
	q.flusher, _ = b.(Flusher)
}

func (q *queueBody[M]) behavior() any { return q.current }

func (q *queueBody[M]) restartable() bool { return true }

func (q *queueBody[M]) close() {
	q.unflushed = false // nothing is flushed any more
	q.inbox.close()
	left := q.inbox.drain()
	if q.inbox.wantRoom.Swap(false) && q.onRoom != nil {
		q.guard(q.onRoom)
	}
	if len(left) > 0 {
		q.drop(left)
	}
}

// drop hands the messages to the behavior's Dropped, each on its own: one that
// panics costs the others nothing.
func (q *queueBody[M]) drop(messages []M) {
	if q.current == nil {
		q.guard(q.renew)
	}
	d, ok := q.current.(Dropper[M])
	if !ok {
		return
	}
	for _, m := range messages {
		q.guard(func() { d.Dropped(m) })
	}
}

func (q *queueBody[M]) release() {
	q.current, q.flusher, q.make, q.onRoom = nil, nil, nil, nil
}
