package actors

import "github.com/asynkron/protoactor-go/actor"

// What is sent to protoactor actors outside protoactor's own code. They carry
// nothing, so one of each is enough.
var (
	stopMessage    = &actor.Stop{}
	restartMessage = &actor.Restart{}
	resumeMessage  = &actor.ResumeMailbox{}
)

// incarnation is the face of a cell that protoactor takes for the actor: it
// gets the events of its life, and decides about failed children.
//
// Every call of user code below is contained. If a panic reached protoactor
// from here, one in Stopping would bring the actor back to life, and one in
// Stopped or Terminated would make its parent wait for it for ever.
type incarnation cell

var (
	_ actor.Actor              = (*incarnation)(nil)
	_ actor.SupervisorStrategy = (*incarnation)(nil)
)

// Receive turns protoactor's lifecycle messages into calls of the behavior's
// optional methods.
func (i *incarnation) Receive(pc actor.Context) {
	c := (*cell)(i)
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
		c.childStopped(m.Who)
	case *actor.Stopping:
		c.stopping()
	case *actor.Stopped:
		c.stopped()
	}
}

// HandleFailure decides what happens to a child that failed.
func (i *incarnation) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	c := (*cell)(i)
	f := reason.(*Failure) // nothing else is escalated: see cell.handle
	f.Directive = c.decide(f)
	c.origin.system.report(f)
	c.origin.system.send(child, f.Directive)
}

// decide asks the supervisor. Stop is what holds if it cannot or does not
// answer.
func (c *cell) decide(f *Failure) (d Directive) {
	s, ok := c.body.behavior().(Supervisor)
	if !ok || c.is(leaving) {
		return Stop
	}
	c.guard(func() { d = s.ChildFailed(c.context(), f.ID, f.Reason) })
	if !f.permits(d) {
		return Stop
	}
	return d
}

func (c *cell) childStopped(who *actor.PID) {
	if b, ok := c.body.behavior().(ChildObserver); ok {
		c.guard(func() { b.ChildStopped(c.context(), parseID(who.Id)) })
	}
	if !c.is(stopping) {
		c.origin.system.forget(who)
	}
}

func (c *cell) stopping() {
	c.state.Or(stopping)
	if b, ok := c.body.behavior().(Stopper); ok {
		c.guard(func() { b.Stopping(c.context()) })
	}
	c.body.close()
}

// stopped takes leave. The actor is uncounted before its Stopped is called: who
// learns from that that it is gone must not find it counted.
func (c *cell) stopped() {
	c.origin.system.departed(c)
	if b, ok := c.body.behavior().(Ender); ok {
		c.guard(func() { b.Stopped(c.context()) })
	}
	c.state.Or(dead)
}

// guard calls user code and contains its failure.
func (c *cell) guard(call func()) {
	var done bool
	defer contain(&done, c.fail)
	call()
	done = true
}
