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
	// Not embedded, which would give Ref all its methods, for each M anew.
	queue queueBody
	inbox inbox[M]
	// The rest belongs to the turn.
	make    func() Behavior[M]
	current Behavior[M] // nil before it is made and after the end
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
	s.arrived(&r.queue.cell)
	parent.adopt(&r.queue.cell)
	return r
}

// newRef returns an actor that is yet to be spawned.
func newRef[M any](o *origin, make func() Behavior[M], opts Options) *Ref[M] {
	if o.exec == nil {
		o.exec = o.system.Pool()
	}
	r := &Ref[M]{make: make}
	r.inbox.gate.capacity = opts.Capacity
	if opts.Capacity <= 0 {
		r.inbox.gate.capacity = DefaultCapacity
	}
	r.queue.gate, r.queue.typed, r.queue.onRoom = &r.inbox.gate, (*typedBody[M])(r), opts.OnRoom
	r.queue.born(o, &r.queue)
	return r
}

// ID returns the actor's ID.
func (r *Ref[M]) ID() ID { return r.queue.id }

// Name returns the actor's name; see [Context.Name].
func (r *Ref[M]) Name() string { return r.queue.name() }

// Offer puts m into the queue unless that is full or the actor is gone. It does
// not allocate once the queue has grown to its working size.
func (r *Ref[M]) Offer(m M) Verdict {
	v := r.inbox.offer(m)
	if v == Accepted {
		r.queue.rouse()
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
	r.queue.rouse()
	return true
}

// Stop tells the actor to stop: after the message that it is handling, if any,
// and before those in the queue, which are dropped. From the moment that Stop
// returns, Offer says Gone. Calling it again does nothing.
func (r *Ref[M]) Stop() {
	r.inbox.gate.close()
	if !r.queue.is(stopping) {
		r.queue.post(stopMessage)
	}
}

// Len returns the number of messages in the queue, without the one being
// handled.
func (r *Ref[M]) Len() int { return r.inbox.gate.len() }

// Alive reports whether the actor takes messages: it has neither stopped nor
// been told to.
func (r *Ref[M]) Alive() bool { return !r.inbox.gate.closed() }

// StillRunning returns what is left of the actor and of all below it, for one
// that was told to stop and whose end did not come, which was waited for until
// cause. Actors with the same name are reported together.
func (r *Ref[M]) StillRunning(cause error) error { return r.queue.stillRunning(cause) }

// typedBody is the face of a Ref that its queueBody sees.
type typedBody[M any] Ref[M]

func (t *typedBody[M]) receive(quota int) (more bool) {
	ctx := t.queue.context()
	for range quota {
		if t.queue.is(notified) {
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
	t.current = t.make()
	return t.current
}

// drop drops each message on its own: one whose Dropped panics costs the others
// nothing.
func (t *typedBody[M]) drop() {
	left := t.inbox.drain()
	if len(left) > 0 && t.current == nil {
		t.queue.guard(t.queue.renew)
	}
	d, ok := t.current.(Dropper[M])
	if !ok {
		return
	}
	for _, m := range left {
		t.queue.guard(func() { d.Dropped(m) })
	}
}

func (t *typedBody[M]) release() { t.make, t.current = nil, nil }
