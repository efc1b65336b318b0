package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/watchmill/watchmill/usercode"
)

// DefaultCapacity is the capacity of a queue, in messages, if Options do not
// say otherwise. It holds a burst, and what waits in it is still fresh.
const DefaultCapacity = 1024

// Options qualifies Spawn. The zero value is ready to use.
type Options struct {
	// Capacity is the number of messages in the queue at which Offer returns
	// Full. Zero or less means [DefaultCapacity].
	Capacity int
	// Executor runs the actor. Nil means the system's [System.Pool]. An actor
	// that may block belongs on [System.Blocking].
	Executor Executor
	// OnRoom is called once after Offer has returned Full, when at least half of
	// the capacity is free again, or when the actor stops (so that the next Offer
	// returns Gone). It is called in the actor's turn and must not block;
	// typically it wakes the producer. Nil means that no call is made.
	OnRoom func()
}

// Ref is a handle on an actor with a queue. There is one queue per actor, first
// in, first out, for messages from Offer, Tell and Ask. All methods are safe for
// concurrent use, and may be called whether the actor lives or not. None blocks,
// but Ask may run a turn. A Ref of a stopped actor keeps neither its behavior nor
// its messages.
type Ref[M any] struct {
	// It is not embedded, since Ref would then have all its methods, compiled for each M.
	queue queueBody
	inbox inbox[M]
	// The fields below belong to the turn.
	newBehavior func() Behavior[M]
	current     Behavior[M] // nil before it is made and after the end
}

// Spawn starts an actor with a queue. newBehavior is called in the actor's own
// turn: before its first message, and again for every restart. Under a
// [*Context] the actor exists when Spawn returns; under a [*System] it exists a
// moment later, which only Context.Children can tell.
//
// If the parent is stopping, restarting or closed, or a wake actor, the actor is not started:
// every Offer to the Ref returns Gone.
//
// Names need not be unique. They appear in logs, failures and reports.
func Spawn[M any](parent Parent, name string, newBehavior func() Behavior[M], opts Options) *Ref[M] {
	s := parent.childSpec(name, opts.Executor)
	r := newRef(s, newBehavior, opts)
	s.system.count(&r.queue.cell)
	parent.adopt(&r.queue.cell)
	return r
}

// newRef returns an actor that is yet to be spawned.
func newRef[M any](s *spec, newBehavior func() Behavior[M], opts Options) *Ref[M] {
	if s.exec == nil {
		s.exec = s.system.Pool()
	}
	r := &Ref[M]{newBehavior: newBehavior}
	r.inbox.state.capacity = opts.Capacity
	if opts.Capacity <= 0 {
		r.inbox.state.capacity = DefaultCapacity
	}
	r.queue.inbox, r.queue.typed, r.queue.onRoom = &r.inbox.state, (*typedBody[M])(r), opts.OnRoom
	r.queue.prepare(s, &r.queue)
	return r
}

// ID returns the actor's ID.
func (r *Ref[M]) ID() ID { return r.queue.id }

// Name returns the actor's name; see [Context.Name].
func (r *Ref[M]) Name() string { return r.queue.name() }

// Offer puts m into the queue unless that is full or the actor has stopped. It
// does not allocate once the queue has grown to its working size.
func (r *Ref[M]) Offer(m M) Verdict {
	v := r.inbox.offer(m)
	if v == Accepted {
		r.queue.wake()
	}
	return v
}

// Tell puts m into the queue even if that is full, which is meant for control
// messages, few by their nature. It returns false, and m is not taken, if the
// actor has stopped or was told to.
func (r *Ref[M]) Tell(m M) bool {
	_, ok := r.inbox.tell(m)
	if ok {
		r.queue.wake()
	}
	return ok
}

// Ask is Tell for a sender that waits for the answer to m. On a [Pool], an idle actor handles m,
// and nothing else, in the calling goroutine before Ask returns, which saves the way to a worker and
// back. An actor that is busy, or has another executor, handles m as if it came from Tell.
//
// The sender must hold no lock that the actor's turn may take. User code in that turn that ends
// its goroutine (runtime.Goexit) ends the sender's. A turn that takes more than a second is
// reported as one that holds a worker: see [ErrWorkerHeld].
func (r *Ref[M]) Ask(m M) bool {
	begins, ok := r.inbox.tell(m)
	switch {
	case !ok:
	case begins > 0:
		r.queue.runOrWake(begins)
	default:
		r.queue.wake()
	}
	return ok
}

// Stop tells the actor to stop: after the message that it is handling, if any,
// and before those in the queue, which are dropped. From the moment that Stop
// returns, Offer returns Gone. Calling it again does nothing.
func (r *Ref[M]) Stop() {
	r.inbox.state.refuse()
	if !r.queue.is(stopping) {
		r.queue.post(stopMessage)
	}
}

// Len returns the number of messages in the queue, without the one being
// handled.
func (r *Ref[M]) Len() int { return r.inbox.state.len() }

// Alive reports whether the actor takes messages: it has neither stopped nor
// been told to.
func (r *Ref[M]) Alive() bool { return !r.inbox.state.isClosed() }

// StillRunning returns an error that names what is left of the actor and of all
// below it, for one that was told to stop and was waited for until cause. It is a
// [*StillRunningError].
func (r *Ref[M]) StillRunning(cause error) error { return r.queue.stillRunning(cause) }

// queueBody is the part of an actor with a queue that does not depend on the
// type of its messages. It is compiled once; the rest is compiled for each type
// that a program uses.
type queueBody struct {
	cell
	inbox  *inboxState
	typed  typedQueue
	onRoom func()
	// The fields below belong to the turn, or are set before the first one.
	invoker   actor.MessageInvoker // protoactor's half of the actor; nil after the end
	wakers    *wakeChildren        // nil until the first wake actor is spawned under it
	current   any                  // the behavior; nil before it is made and after the end
	flusher   Flusher              // current, if it is one
	unflushed bool                 // messages were received since the last Flush
	failure   *Failure             // the last one that the parent was asked about
	later     []*Failure           // those that it will be asked about if the actor is resumed
}

// typedQueue is the part that depends on the type of the messages. All its
// methods are called from turns.
type typedQueue interface {
	// receive passes messages to the behavior until the quota or the inbox is
	// used up, or a system message has come. It reports whether some may be left.
	receive(quota int) (more bool)
	// renew makes a new behavior and returns it. If that panics, or is nil, there
	// is none.
	renew() any
	// drop empties the closed inbox, into the behavior's Dropped if it has one.
	drop()
	// release drops the references to the behavior and its constructor.
	release()
}

// work passes messages to the behavior and, unless a system message has come,
// flushes it.
func (q *queueBody) work(quota int) (more bool) {
	var done bool
	defer contain(&done, q.failWorking)
	q.announceRoom()
	left := q.typed.receive(quota)
	q.flush()
	done = true
	return left || q.unflushed
}

// failWorking is fail during work, some of which may be left: that is said here, since after
// a Goexit work does not return.
func (q *queueBody) failWorking(reason any, stack []byte) {
	q.state.Or(hasWork)
	q.fail(reason, stack)
}

// control passes system messages on to protoactor, except those about failures and wake actors.
func (q *queueBody) control(message any) {
	switch m := message.(type) {
	case *ownFailure:
		q.failed(m.failure)
	case *actor.SuspendMailbox: // it is suspended already
	case *actor.ResumeMailbox:
		q.resume()
	case *actor.Restart:
		if !q.is(stopping) { // or protoactor would restart it after its children have stopped
			defer q.reportLater(Restart)()
			q.invoke(m)
		}
	case *wakerFailed:
		q.wakers.failed(m)
	case *wakerStopped:
		q.wakers.remove((*WakeBox)(m))
	default:
		q.invoke(m)
	}
}

// failed suspends the actor and asks its parent, or waits until that has decided about an
// earlier failure. The failure of an actor that is stopping is only reported.
func (q *queueBody) failed(f *Failure) {
	switch {
	case q.is(stopping):
		q.spec.system.report(f)
	case q.is(suspended):
		q.later = append(q.later, f)
	default:
		q.state.Or(suspended)
		q.failure = f
		q.invoker.EscalateFailure(f, nil)
	}
}

// resume lets the actor go on, unless it waits for a decision about another failure. One that
// is stopping only stops.
func (q *queueBody) resume() {
	if q.is(stopping) {
		return
	}
	q.state.And(^suspended)
	if len(q.later) > 0 {
		next := q.later[0]
		q.later = q.later[1:]
		q.failed(next)
	}
}

// reportLater returns a function that reports the failures that have waited until now: the
// directive about the one before settles them, too.
func (q *queueBody) reportLater(d Directive) func() {
	later := q.later
	q.later = nil
	return func() {
		usercode.Each(later, func(f *Failure) {
			f.Directive = d
			q.spec.system.report(f)
		})
	}
}

// flush ends a batch, unless a system message has come: that is handled first,
// and the turn after it flushes.
func (q *queueBody) flush() {
	if q.unflushed && !q.is(hasSystem) {
		q.unflushed = false
		q.flusher.Flush(q.context())
	}
}

func (q *queueBody) announceRoom() {
	if q.inbox.roomMade() && q.onRoom != nil {
		q.onRoom()
	}
}

func (q *queueBody) start() {
	q.failure = nil
	q.renew()
	if s, ok := q.current.(Starter); ok {
		s.Started(q.context())
	}
}

// renew replaces the behavior. If its constructor panics there is none.
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

// close tells the producers that it takes no more, reports the failures that are undecided, and drops
// the messages: each even if user code ends the goroutine in the one before.
func (q *queueBody) close() {
	q.unflushed = false // nothing is flushed any more
	q.inbox.refuse()
	defer q.typed.drop()
	defer q.reportLater(Stop)()
	if q.inbox.wantRoom.Swap(false) && q.onRoom != nil {
		q.guard(q.onRoom)
	}
}

func (q *queueBody) release() {
	q.invoker, q.current, q.flusher, q.onRoom, q.failure, q.later = nil, nil, nil, nil, nil, nil
	q.typed.release()
}

// typedBody is a Ref as its queueBody sees it.
type typedBody[M any] Ref[M]

func (t *typedBody[M]) receive(quota int) (more bool) {
	ctx := t.queue.context()
	for range quota {
		if t.queue.is(hasSystem) {
			return true
		}
		m, ok := t.inbox.next()
		if !ok {
			return false
		}
		t.queue.unflushed = t.queue.flusher != nil
		t.current.Receive(ctx, m)
		t.queue.announceRoom()
	}
	return true
}

func (t *typedBody[M]) renew() any {
	t.current = nil
	t.current = t.newBehavior()
	return t.current
}

// drop contains each call of Dropped on its own, so that one that panics, or ends the
// goroutine, does not affect the other messages.
func (t *typedBody[M]) drop() {
	left := t.inbox.drain()
	if len(left) > 0 && t.current == nil {
		t.queue.guard(t.queue.renew)
	}
	if d, ok := t.current.(Dropper[M]); ok {
		usercode.Each(left, func(m M) { t.queue.guard(func() { d.Dropped(m) }) })
	}
}

func (t *typedBody[M]) release() { t.newBehavior, t.current = nil, nil }
