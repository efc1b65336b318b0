package actors

import "github.com/asynkron/protoactor-go/actor"

// mailbox is the face of a cell that protoactor and the executor see: one posts
// system messages to it, the other runs its turns. User messages do not pass
// through it, so they need not be of type any, and cost protoactor nothing.
type mailbox cell

var (
	_ actor.Mailbox = (*mailbox)(nil)
	_ Task          = (*mailbox)(nil)
)

// RegisterHandlers is called while the actor is spawned. The dispatcher is
// protoactor's default and never used.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.protocol = invoker
}

// Start releases the cell, which was born scheduled, to its executor.
func (m *mailbox) Start() { (*cell)(m).submit() }

// PostSystemMessage queues one of protoactor's messages or one of ours.
func (m *mailbox) PostSystemMessage(message any) { (*cell)(m).post(message) }

// PostUserMessage ignores the message: nobody has a PID to send one to.
func (m *mailbox) PostUserMessage(any) {}

// UserMessageCount is asked only by protoactor's metrics, which are off.
func (m *mailbox) UserMessageCount() int { return 0 }

// ActorID and String say whose turn it is.
func (m *mailbox) ActorID() ID { return m.id }

// String returns the actor's name.
func (m *mailbox) String() string { return (*cell)(m).name() }

// RunTurn runs one turn: system messages first, then work.
func (m *mailbox) RunTurn() {
	c := (*cell)(m)
	defer c.end() // even if user code ends the goroutine
	if c.is(notified) || c.taken != nil {
		c.state.Or(running)
		if !c.runSystem() {
			return
		}
	}
	if c.begin() && c.body.work(c.origin.exec.Throughput()) {
		c.state.Or(woken)
	}
}

// runSystem handles all system messages and reports whether the actor is still
// alive.
func (c *cell) runSystem() bool {
	for {
		message := c.nextSystem()
		if message == nil {
			return true
		}
		c.handle(message)
		if c.is(dead) {
			c.bury()
			return false
		}
	}
}

func (c *cell) handle(message any) {
	switch m := message.(type) {
	case *actor.SuspendMailbox:
		c.state.Or(suspended)
	case *actor.ResumeMailbox:
		c.state.And(^suspended)
	case *failed:
		c.protocol.EscalateFailure(m.failure, nil)
	case *dismissal:
		if m.parent == c.origin.parent {
			c.protocol.InvokeSystemMessage(stopMessage)
		}
	default:
		c.protocol.InvokeSystemMessage(m)
	}
}

// bury lets go of all that a dead cell holds, since users may keep its Ref or
// WakeBox, and reports failures that nobody will be asked about any more.
func (c *cell) bury() {
	for m := c.nextSystem(); m != nil; m = c.nextSystem() {
		if f, ok := m.(*failed); ok {
			c.origin.system.report(f.failure)
		}
	}
	c.body.release()
	c.protocol, c.brood = nil, nil
}

// fail records that user code of this actor has panicked. An actor that is
// stopping or restarting goes on with that: the failure is only reported.
func (c *cell) fail(reason any, stack []byte) {
	f := &Failure{
		Actor: c.name(), ID: c.id, Reason: reason, Stack: stack,
		restartable: c.body.restartable(),
		resumable:   c.body.behavior() != nil,
	}
	if c.is(leaving) {
		if !c.is(stopping | dead) {
			f.Directive = Restart
		}
		c.origin.system.report(f)
		return
	}
	c.post(&failed{f})
}
