package actors

import "github.com/asynkron/protoactor-go/actor"

// Parent is what an actor can be spawned under: a [*System], from any
// goroutine, or the [*Context] of an actor with a queue, in the turn that it belongs
// to. A parent that stops, stops its children first; one that is restarted loses them. It may
// gain methods.
type Parent interface {
	// childSpec returns the spec of a child with the given name.
	childSpec(name string, exec Executor) *spec
	// adopt spawns the cell, now or soon, or abandons it.
	adopt(child *cell)
}

// childSpec begins a new group.
func (s *System) childSpec(name string, exec Executor) *spec {
	child := &spec{system: s, parentID: s.root.queue.id, exec: exec, name: name}
	if pool, ok := s.pool.(*Pool); ok {
		child.group = &taskGroup{pool: pool}
	}
	return child
}

// childSpec puts the child into its parent's group.
func (x *Context) childSpec(name string, exec Executor) *spec {
	return &spec{system: x.spec.system, parentID: x.id, exec: exec, name: x.Name() + "/" + name, group: x.spec.group}
}

// adopt has the root actor spawn the cell, since only the parent's own turn may
// add a child.
func (s *System) adopt(child *cell) {
	if !s.root.Tell(spawnRequest{child}) {
		child.abandon()
	}
}

func (x *Context) adopt(child *cell) {
	props := propsFor(func() *cell { return child })
	if x.cell().spawn(props) != nil {
		child.abandon()
	}
}

// spawnRequest asks the root actor to spawn a cell as its child.
type spawnRequest struct{ child *cell }

// rootActor is the parent of the actors that are spawned on the System. It runs
// on the blocking executor, so that it can be told to stop even while all
// workers of the pool are blocked.
type rootActor struct{ stopped chan<- struct{} }

func (s *System) spawnRoot() {
	s.root = newRef(&spec{system: s, exec: s.blocking, name: "system"},
		func() Behavior[spawnRequest] { return rootActor{s.stopped} }, Options{})
	// The ID is new, so the name cannot be taken, which is the only error.
	_, _ = s.proto.Root.SpawnNamed(propsFor(func() *cell { return &s.root.queue.cell }), "")
}

func (rootActor) Receive(ctx *Context, m spawnRequest) { ctx.adopt(m.child) }

func (rootActor) Dropped(m spawnRequest) { m.child.abandon() }

func (r rootActor) Stopped(*Context) { close(r.stopped) }

// spawn makes an actor of props under c.
func (c *cell) spawn(props *actor.Props) error {
	q, ok := c.body.(*queueBody)
	if !ok {
		return ErrNoChildren
	}
	if c.is(noNewChildren) {
		return ErrStopping
	}
	_, err := q.invoker.(actor.SpawnerContext).SpawnNamed(props, "")
	return err
}

// children returns the number of c's children.
func (c *cell) children() int {
	q, ok := c.body.(*queueBody)
	if !ok || q.invoker == nil {
		return 0
	}
	n := len(q.invoker.(actor.Context).Children())
	if q.wakers != nil {
		n += q.wakers.n - 1
	}
	return n
}

// abandon ends a cell that was never spawned, as one that is stopped before its first turn.
func (c *cell) abandon() {
	c.state.Or(dead)
	defer c.body.release()
	defer c.stopped()
	c.body.close()
}
