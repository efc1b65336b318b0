package actors

import "github.com/asynkron/protoactor-go/actor"

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
		c.childStopped(m.Who)
	case *actor.Stopping:
		c.stopping()
	case *actor.Stopped:
		c.stopped()
	}
}

// HandleFailure decides what happens to a child that failed.
func (l *lifecycle) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	c := (*cell)(l)
	f := reason.(*Failure) // nothing else is escalated: see cell.handle
	f.Directive = c.decide(f)
	c.spec.system.report(f)
	c.spec.system.carryOut(child, f.Directive)
}

// decide asks the supervisor. The answer is Stop if there is none, if it fails,
// or if its directive cannot be carried out.
func (c *cell) decide(f *Failure) (d Directive) {
	s, ok := c.body.behavior().(Supervisor)
	if !ok || c.is(childless) {
		return Stop
	}
	c.guard(func() { d = s.ChildFailed(c.context(), f.ID, f.Reason) })
	if !f.permits(d) {
		return Stop
	}
	return d
}

func (c *cell) childStopped(child *actor.PID) {
	if b, ok := c.body.behavior().(ChildObserver); ok {
		c.guard(func() { b.ChildStopped(c.context(), parseID(child.Id)) })
	}
	if !c.is(stopping) {
		c.spec.system.releaseChild(child)
	}
}

func (c *cell) stopping() {
	c.state.Or(stopping)
	if b, ok := c.body.behavior().(Stopper); ok {
		c.guard(func() { b.Stopping(c.context()) })
	}
	c.body.close()
}

// stopped ends the actor. It is uncounted before its Stopped is called: code
// that Stopped notifies must not find it counted.
func (c *cell) stopped() {
	c.spec.system.uncount(c)
	if b, ok := c.body.behavior().(Ender); ok {
		c.guard(func() { b.Stopped(c.context()) })
	}
	c.state.Or(dead)
}
