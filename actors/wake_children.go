package actors

import (
	"github.com/asynkron/protoactor-go/actor"
)

// wakeChildren is the wake actors under one parent. To protoactor they are a single
// process, a child of the parent: it is told to stop when the parent stops or is
// restarted, and has terminated when all of them have stopped. So a wake actor has no
// part of protoactor's own, which would be 360 bytes and a third of the time that it
// takes to spawn and stop it.
//
//	protoactor ──Stop──▶ wakeChildren ──Stop──▶ wake actor
//	           ◀─Terminated─         ◀─wakerStopped, wakerFailed─
//
// Everything here belongs to the parent's turns.
type wakeChildren struct {
	parent *queueBody
	pid    *actor.PID
	newest *WakeBox // the first of the list
	n      int
	specs  []*spec
	// ending: the parent waits until there are none. ended: it was told so.
	ending, ended bool
}

var _ actor.Process = (*wakeChildren)(nil)

// newWakeChildren makes the process, which parent's protoactor half knows from then on.
func newWakeChildren(parent *queueBody) *wakeChildren {
	w := &wakeChildren{parent: parent}
	system := parent.spec.system
	props := actor.PropsFromProducer(nil, actor.WithSpawnFunc(
		func(*actor.ActorSystem, string, *actor.Props, actor.SpawnerContext) (*actor.PID, error) {
			w.pid, _ = system.proto.ProcessRegistry.Add(w, system.nextID().String()) // the ID is new
			return w.pid, nil
		}))
	_, _ = parent.invoker.(actor.SpawnerContext).SpawnNamed(props, "") // no error: see above
	return w
}

// specFor returns the spec of wake actors on exec.
func (w *wakeChildren) specFor(exec Executor) *spec {
	for _, shared := range w.specs {
		if shared.exec == exec {
			return shared
		}
	}
	parent := w.parent.spec
	shared := &spec{
		system: parent.system, parentID: w.parent.id, exec: exec,
		group: parent.group, name: w.parent.name(), siblings: w,
	}
	w.specs = append(w.specs, shared)
	return shared
}

// add counts a child.
func (w *wakeChildren) add(child *WakeBox) {
	child.next = w.newest
	if w.newest != nil {
		w.newest.previous = child
	}
	w.newest = child
	w.n++
	w.parent.spec.system.live.Add(1)
	w.parent.spec.wakers.Add(1)
}

// remove forgets a child that has stopped.
func (w *wakeChildren) remove(child *WakeBox) {
	if child.previous != nil {
		child.previous.next = child.next
	} else {
		w.newest = child.next
	}
	if child.next != nil {
		child.next.previous = child.previous
	}
	child.previous, child.next = nil, nil
	w.n--
	defer w.endIfEmpty()
	w.parent.childStopped(child.id)
}

// failed decides about a child that has failed, as HandleFailure does about others.
func (w *wakeChildren) failed(m *wakerFailed) {
	defer m.carryOut()
	defer w.parent.spec.system.report(m.failure)
	m.failure.Directive = w.parent.decide(m.failure)
}

// SendSystemMessage stops all children if the message is Stop, which protoactor sends in
// the parent's turn, when that stops or is restarted. No other is meant for the process.
func (w *wakeChildren) SendSystemMessage(_ *actor.PID, message any) {
	if _, ok := message.(*actor.Stop); !ok {
		return
	}
	w.ending = true
	for child := w.newest; child != nil; child = child.next {
		child.post(stopMessage)
	}
	w.endIfEmpty()
}

// endIfEmpty ends the process if the parent waits for that.
func (w *wakeChildren) endIfEmpty() {
	if w.ending && w.n == 0 && !w.ended {
		w.ended = true
		w.parent.spec.system.proto.ProcessRegistry.Remove(w.pid)
		w.parent.post(&actor.Terminated{Who: w.pid})
	}
}

// SendUserMessage is never called: the PID does not leave this package.
func (w *wakeChildren) SendUserMessage(*actor.PID, any) {}

// Stop is never called: protoactor's parents send the message.
func (w *wakeChildren) Stop(*actor.PID) {}

// wakerStopped tells the parent that a wake actor has stopped.
type wakerStopped WakeBox

// wakerFailed asks the parent about a wake actor that has failed and is suspended.
type wakerFailed struct {
	child   *WakeBox
	failure *Failure
}

// carryOut applies the directive.
func (m *wakerFailed) carryOut() {
	if m.failure.Directive == Resume {
		m.child.post(resumeMessage)
	} else {
		m.child.post(stopMessage)
	}
}
