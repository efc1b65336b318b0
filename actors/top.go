package actors

import "github.com/asynkron/protoactor-go/actor"

// topActor is the parent of the actors that are spawned on the System. It runs
// on the blocking executor, so that even a pool with all its workers blocked
// can be told to stop.
type topActor struct{ gone chan<- struct{} }

func (s *System) spawnTop() {
	s.top = newRef(&origin{system: s, exec: s.blocking, name: "system"},
		func() Behavior[adoption] { return topActor{s.gone} }, Options{})
	// The ID is new, so the name cannot be taken, which is the only error.
	_, _ = s.proto.Root.SpawnNamed(propsFor(func() *cell { return &s.top.queue.cell }), "")
}

func (topActor) Receive(ctx *Context, m adoption) { ctx.adopt(m.child) }

func (topActor) Dropped(m adoption) { m.child.abandon() }

func (t topActor) Stopped(*Context) { close(t.gone) }

// send carries out a directive on a child that failed. If the child is gone
// meanwhile nothing is sent: it would be a dead letter.
func (s *System) send(child *actor.PID, d Directive) {
	process, ok := s.proto.ProcessRegistry.Get(child)
	if !ok {
		return
	}
	switch d {
	case Restart:
		process.SendSystemMessage(child, restartMessage)
	case Resume:
		process.SendSystemMessage(child, resumeMessage)
	default:
		process.SendSystemMessage(child, stopMessage)
	}
}

// post sends a system message to the actor with the given ID, if it is there.
func (s *System) post(id ID, message any) {
	if process, ok := s.proto.ProcessRegistry.GetLocal(id.String()); ok {
		process.SendSystemMessage(nil, message)
	}
}

// farewell is sent to an actor that is gone: see forget.
type farewell struct{}

// forget makes the PID of a child that is gone let go of it. protoactor's set
// of children keeps removed PIDs in the spare capacity of its slice, and a PID
// that has been sent to keeps its actor, until it is sent to again.
func (s *System) forget(child *actor.PID) { s.proto.Root.Send(child, farewell{}) }
