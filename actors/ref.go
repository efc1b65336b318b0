package actors

// DefaultCapacity is the capacity of a queue, in messages, if Options do not
// say otherwise: room for a burst, while what waits in it is still fresh.
const DefaultCapacity = 1024

// Options qualifies Spawn. The zero value is ready to use.
type Options struct {
	// Capacity is the number of messages in the queue at which Offer says Full.
	// Zero or less means [DefaultCapacity].
	Capacity int
	// Executor runs the actor. Nil means the system's [System.Pool]. An actor
	// that may block belongs on [System.Blocking].
	Executor Executor
	// OnRoom is called once after Offer has said Full, when at least half of the
	// capacity is free again, or when the actor stops (so that the next Offer
	// says Gone). It is called in the actor's turn and must not block; typically
	// it wakes the producer. Nil means that nobody cares.
	OnRoom func()
}

// Ref is a handle on an actor with a queue. There is one queue per actor, first
// in, first out, for what is Offered and what is Told. All methods are safe for
// concurrent use, never block, and may be called whether the actor lives or
// not. A Ref of a stopped actor keeps neither its behavior nor its messages.
type Ref[M any] struct {
	cell
	inbox  inbox[M]
	make   func() Behavior[M]
	onRoom func()
	// The rest belongs to the turn.
	current   Behavior[M] // nil before it is made and after the end
	flusher   Flusher     // current, if it is one
	unflushed bool        // messages were received since the last Flush
}

// Spawn starts an actor with a queue. make is called in the actor's own turn:
// before its first message, and again for every restart. Under a [*Context] the
// actor exists when Spawn returns; under a [*System] it does a moment later,
// which can only be told by looking at Context.Children.
//
// If the parent is stopping, restarting or closed the actor is not started:
// every Offer to the Ref says Gone.
//
// Names need not be unique. They show in logs, failures and reports.
func Spawn[M any](parent Parent, name string, make func() Behavior[M], opts Options) *Ref[M] {
	s, id, prefix := parent.lineage()
	r := newRef(&origin{system: s, parent: id, exec: opts.Executor, name: prefix + name}, make, opts)
	s.arrived(&r.cell)
	parent.adopt(&r.cell)
	return r
}

// newRef returns an actor that is yet to be spawned.
func newRef[M any](o *origin, make func() Behavior[M], opts Options) *Ref[M] {
	if o.exec == nil {
		o.exec = o.system.Pool()
	}
	r := &Ref[M]{make: make, onRoom: opts.OnRoom}
	r.inbox.capacity = opts.Capacity
	if r.inbox.capacity <= 0 {
		r.inbox.capacity = DefaultCapacity
	}
	r.id, r.origin, r.body = o.system.nextID(), o, (*queueBody[M])(r)
	r.state.Store(spawned | scheduled) // until protoactor starts it
	return r
}

// ID returns the actor's ID.
func (r *Ref[M]) ID() ID { return r.id }

// Name returns the actor's name; see [Context.Name].
func (r *Ref[M]) Name() string { return r.name() }

// Offer puts m into the queue unless that is full or the actor is gone. It does
// not allocate once the queue has grown to its working size.
func (r *Ref[M]) Offer(m M) Verdict {
	v := r.inbox.offer(m)
	if v == Accepted && r.wake() {
		r.submit()
	}
	return v
}

// Tell puts m into the queue even if that is full, which is meant for control
// messages, few by their nature. It returns false, and m is not taken, if the
// actor is gone.
func (r *Ref[M]) Tell(m M) bool {
	if !r.inbox.tell(m) {
		return false
	}
	if r.wake() {
		r.submit()
	}
	return true
}

// Stop tells the actor to stop: after the message that it is handling, if any,
// and before those in the queue, which are dropped. From the moment that Stop
// returns, Offer says Gone. Calling it again does nothing.
func (r *Ref[M]) Stop() {
	r.inbox.close()
	if !r.is(stopping) {
		r.post(stopMessage)
	}
}

// Len returns the number of messages in the queue, without the one being
// handled.
func (r *Ref[M]) Len() int { return r.inbox.len() }

// Alive reports whether the actor takes messages: it has neither stopped nor
// been told to.
func (r *Ref[M]) Alive() bool { return !r.inbox.closed() }
