package actors

import "github.com/asynkron/protoactor-go/actor"

// Parent is what an actor can be spawned under: a [*System], from any
// goroutine, or a [*Context], in the turn that it belongs to. A parent that
// stops, stops its children first; one that is restarted loses them.
type Parent interface {
	// lineage returns what a child inherits: the system, the parent's ID and the
	// prefix of its name.
	lineage() (s *System, parent ID, prefix string)
	// adopt spawns the cell, now or soon, or abandons it.
	adopt(child *cell)
}

func (s *System) lineage() (*System, ID, string) { return s, s.top.queue.id, "" }

func (x *Context) lineage() (*System, ID, string) { return x.origin.system, x.id, x.Name() + "/" }

// adopt leaves it to the top actor to spawn the cell, since only the parent's
// own turn may add a child.
func (s *System) adopt(child *cell) {
	if !s.top.Tell(adoption{child}) {
		child.abandon()
	}
}

func (x *Context) adopt(child *cell) {
	props := propsFor(func() *cell { return child })
	if x.cell().spawn(child, props) != nil {
		child.abandon()
	}
}

// spawn makes child an actor under c.
func (c *cell) spawn(child *cell, props *actor.Props) error {
	if c.is(leaving) {
		return ErrStopping
	}
	_, err := c.protocol.(actor.SpawnerContext).SpawnNamed(props, "")
	return err
}

// children returns the number of c's children.
func (c *cell) children() int {
	if c.protocol == nil {
		return 0
	}
	return len(c.protocol.(actor.Context).Children())
}

// propsFor tells protoactor how to spawn the cell that which returns at that
// moment. Cells are known to it by their ID alone: names need not be unique
// then, and an ID of a few bytes is what 100,000 watchers can afford.
func propsFor(which func() *cell) *actor.Props {
	return actor.PropsFromProducer(
		func() actor.Actor { return (*incarnation)(which()) },
		actor.WithMailbox(func() actor.Mailbox { return (*mailbox)(which()) }),
		actor.WithSpawnFunc(func(as *actor.ActorSystem, _ string, props *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
			return actor.DefaultSpawner(as, which().id.String(), props, parent)
		}))
}

// abandon ends a cell that was never spawned.
func (c *cell) abandon() {
	c.state.Or(dead)
	c.body.close()
	c.body.release()
	c.origin.system.departed(c)
}

// brood is what an actor needs to spawn wake actors: protoactor's description
// of them and their origins, both shared.
type brood struct {
	props    *actor.Props
	spawning *cell // whom props describes at the moment
	origins  []*origin
}

// broodOf returns c's brood, made with its first child.
func (c *cell) broodOf() *brood {
	if c.brood == nil {
		b := &brood{}
		// A restart would ask again, at a time when spawning is another cell; so
		// wake actors are never restarted.
		b.props = propsFor(func() *cell { return b.spawning })
		c.brood = b
	}
	return c.brood
}

// originFor returns the origin of wake actors under c on exec.
func (b *brood) originFor(c *cell, exec Executor) *origin {
	for _, o := range b.origins {
		if o.exec == exec {
			return o
		}
	}
	o := &origin{system: c.origin.system, parent: c.id, exec: exec, name: c.name(), above: c.origin}
	b.origins = append(b.origins, o)
	return o
}

// spawn makes child a wake actor under c, whose brood b is.
func (b *brood) spawn(c, child *cell) error {
	b.spawning = child
	defer func() { b.spawning = nil }()
	err := c.spawn(child, b.props)
	if err != nil {
		child.abandon()
	}
	return err
}
