package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/watchmill/watchmill/usercode"
)

// mailbox is a cell as the executor sees it, which runs its turns, and, if the actor
// has a queue, as protoactor does, which posts system messages to it. User messages do
// not pass through it, so they need not be of type any and cost protoactor nothing.
type mailbox cell

var (
	_ actor.Mailbox = (*mailbox)(nil)
	_ Task          = (*mailbox)(nil)
)

// RegisterHandlers is called while the actor is spawned. The dispatcher is
// protoactor's default and not used.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.body.(*queueBody).invoker = invoker
}

// Start submits the cell, which counts as scheduled from the beginning.
func (m *mailbox) Start() { (*cell)(m).submit() }

// PostSystemMessage queues one of protoactor's messages or one of this package.
func (m *mailbox) PostSystemMessage(message any) { (*cell)(m).post(message) }

// PostUserMessage ignores the message: no PID leaves this package, so none is
// sent.
func (m *mailbox) PostUserMessage(any) {}

// UserMessageCount is called only by protoactor's metrics, which are off.
func (m *mailbox) UserMessageCount() int { return 0 }

// ActorID returns the ID of the actor whose turn this is.
func (m *mailbox) ActorID() ID { return m.id }

// String returns the actor's name.
func (m *mailbox) String() string { return (*cell)(m).name() }

// RunTurn runs one turn: system messages first, then work.
func (m *mailbox) RunTurn() {
	c := (*cell)(m)
	defer c.endTurn() // even if user code ends the goroutine
	if c.is(hasSystem) || c.taken != nil {
		c.state.Or(running)
		if !c.runSystem() {
			return
		}
	}
	if c.beginWork() && c.body.work(c.spec.exec.Throughput()) {
		c.state.Or(hasWork)
	}
}

// runSystem handles all system messages and reports whether the actor is still
// alive. The end of one that is not is complete even if user code ends the goroutine.
func (c *cell) runSystem() (alive bool) {
	defer func() {
		if alive = !c.is(dead); !alive {
			c.release()
		}
	}()
	for !c.is(dead) {
		message := c.nextSystem()
		if message == nil {
			break
		}
		c.body.control(message)
	}
	return
}

// release drops all references of a dead cell, since users may keep its Ref or
// WakeBox, and reports failures that no supervisor will decide about any more.
func (c *cell) release() {
	defer c.body.release()
	var undecided []*Failure
	for m := c.nextSystem(); m != nil; m = c.nextSystem() {
		if f, ok := m.(*ownFailure); ok {
			undecided = append(undecided, f.failure)
		}
	}
	usercode.Each(undecided, c.spec.system.report)
}

// fail records that user code of this actor has panicked. An actor that is
// stopping or restarting goes on with that: the failure is only reported.
func (c *cell) fail(reason any, stack []byte) {
	f := &Failure{
		Actor: c.title(), ID: c.id, Reason: reason, Stack: stack,
		restartable: c.body.restartable(),
		resumable:   c.body.behavior() != nil,
	}
	if c.is(noNewChildren) {
		if !c.is(stopping | dead) {
			f.Directive = Restart
		}
		c.spec.system.report(f)
		return
	}
	if c.is(suspended) { // or the message might come behind the restart that is decided now
		c.body.control(&ownFailure{f})
		return
	}
	c.post(&ownFailure{f})
}

// guard calls user code and contains its failure.
func (c *cell) guard(call func()) {
	var done bool
	defer contain(&done, c.fail)
	call()
	done = true
}

// lifecycle is a cell as protoactor's actor and supervisor: it gets the events
// of the actor's life and decides about failed children.
//
// Every call of user code here is contained. If a panic reached protoactor, one
// in Stopping would bring the actor back to life, and one in Stopped or
// Terminated would make its parent wait for it for ever.
type lifecycle cell

var (
	_ actor.Actor              = (*lifecycle)(nil)
	_ actor.SupervisorStrategy = (*lifecycle)(nil)
)

// Receive turns protoactor's lifecycle messages into calls of the behavior's
// optional methods.
func (l *lifecycle) Receive(pc actor.Context) {
	c := (*cell)(l)
	switch m := pc.Message().(type) {
	case *actor.Started:
		c.state.And(^restarting)
		c.guard(c.body.start)
	case *actor.Restarting:
		c.state.Or(restarting)
		if b, ok := c.body.behavior().(Restarter); ok {
			c.guard(func() { b.Restarting(c.context()) })
		}
	case *actor.Terminated:
		q := c.body.(*queueBody)
		if m.Who == noChild {
			return
		}
		if q.wakers != nil && q.wakers.pid == m.Who {
			q.wakers = nil
			return
		}
		c.childStopped(parseID(m.Who.Id))
		if !c.is(stopping) {
			c.spec.system.releaseChild(m.Who)
		}
	case *actor.Stopping:
		c.stopping()
	case *actor.Stopped:
		c.stopped()
	}
}

// HandleFailure decides what happens to a child that failed. The decision is reported and
// carried out even if the Supervisor, or OnFailure, ends the goroutine.
func (l *lifecycle) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	c := (*cell)(l)
	f := reason.(*Failure) // nothing else is escalated: see queueBody.failed
	defer func() { c.spec.system.carryOut(child, f.Directive) }()
	defer c.spec.system.report(f)
	f.Directive = c.decide(f)
}

// decide asks the supervisor. The answer is Stop if there is none, if it fails,
// or if its directive cannot be carried out.
func (c *cell) decide(f *Failure) (d Directive) {
	s, ok := c.body.behavior().(Supervisor)
	if !ok || c.is(noNewChildren) {
		return Stop
	}
	c.guard(func() { d = s.ChildFailed(c.context(), f.ID, f.Reason) })
	if !f.permits(d) {
		return Stop
	}
	return d
}

func (c *cell) childStopped(child ID) {
	if b, ok := c.body.behavior().(ChildObserver); ok {
		c.guard(func() { b.ChildStopped(c.context(), child) })
	}
}

func (c *cell) stopping() {
	c.state.Or(stopping)
	defer c.body.close()
	if b, ok := c.body.behavior().(Stopper); ok {
		c.guard(func() { b.Stopping(c.context()) })
	}
}

// stopped ends the actor. It is uncounted before its Stopped is called: code
// that Stopped notifies must not find it counted.
func (c *cell) stopped() {
	c.spec.system.uncount(c)
	defer c.state.Or(dead)
	if b, ok := c.body.behavior().(Ender); ok {
		defer c.spec.system.inStopped(c)()
		c.guard(func() { b.Stopped(c.context()) })
	}
}

// systemMessage is a link in an actor's list of system messages, which are
// handled before everything in its queue. Its message is one of
//
//   - protoactor's own: Started, Stop, Restart, Terminated, SuspendMailbox and
//     ResumeMailbox, sent by protoactor or, where that would risk a dead letter, and
//     to wake actors, by this package;
//   - ownFailure;
//   - wakerFailed and wakerStopped, from a wake actor to its parent.
type systemMessage struct {
	next    *systemMessage
	message any // a pointer
}

// ownFailure tells an actor that its user code has panicked. An actor sends it
// to itself; then it is suspended and its parent is asked, about one failure at a time.
type ownFailure struct{ failure *Failure }

// The messages that this package sends in protoactor's place. They have no
// fields that matter, so one of each is enough.
var (
	startMessage   = &actor.Started{}
	stopMessage    = &actor.Stop{}
	restartMessage = &actor.Restart{}
	resumeMessage  = &actor.ResumeMailbox{}
)
