package actors

import (
	"log/slog"
	"math/bits"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// registryBuckets returns the number of maps of 32 shards in a registry.
// Protoactor's own has 1024, so that an empty one is 32,768 locked maps in 3 MB,
// which take a millisecond to make; with these it is 25 KB. Only spawns and stops
// go through a registry, and no messages, so these are locks enough.
//
// Where an int has 32 bits there is one: protoactor takes the remainder of a
// hash that is negative there for half of all names, and only that of a division
// by one is an index of the slice for all of them.
func registryBuckets() int {
	if bits.UintSize == 32 {
		return 1
	}
	return 8
}

// templateSystem is the one system that protoactor makes itself; nothing runs on
// it. It would log to stderr, so its logs are discarded.
var templateSystem = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
})

// newActorSystem makes a system like the template with a registry and an event
// stream of its own. It must not be Shutdown, which would only close what the
// systems share.
//
// Its event stream has no subscribers, so a dead letter has no effect: with
// protoactor's own subscription the first one would start a goroutine to count
// them. Dead letters cannot be avoided, since a parent that stops sends even to
// children whose end it has not heard of yet.
func newActorSystem() *actor.ActorSystem {
	proto := *templateSystem()
	s := &proto
	s.ProcessRegistry = &actor.ProcessRegistryValue{ActorSystem: s, Address: s.ProcessRegistry.Address, LocalPIDs: newRegistry()}
	s.Root = actor.NewRootContext(s, actor.EmptyMessageHeader)
	s.Guardians = actor.NewGuardians(s)
	setZero(&s.EventStream)
	s.DeadLetter = actor.NewDeadLetter(s)
	setZero(&s.EventStream) // without the subscriptions of the line above
	return s
}

// newRegistry returns an empty registry.
func newRegistry() *actor.SliceMap {
	r := &actor.SliceMap{LocalPIDs: make([]cmap.ConcurrentMap, registryBuckets())}
	for i := range r.LocalPIDs {
		r.LocalPIDs[i] = cmap.New()
	}
	return r
}

// setZero makes *p point to a new zero value. It can do so where the value's
// type cannot be named without a further import.
func setZero[T any](p **T) { *p = new(T) }

// propsFor tells protoactor how to spawn the cell that child returns at that
// moment. Cells are registered by their ID alone: then names need not be unique,
// and the key takes a few bytes, which matters with 100,000 watchers.
func propsFor(child func() *cell) *actor.Props {
	return actor.PropsFromProducer(
		func() actor.Actor { return (*lifecycle)(child()) },
		actor.WithMailbox(func() actor.Mailbox { return (*mailbox)(child()) }),
		actor.WithSpawnFunc(func(as *actor.ActorSystem, _ string, props *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
			return actor.DefaultSpawner(as, child().id.String(), props, parent)
		}))
}

// noChild is the PID of no actor. Protoactor, told that it has terminated, only checks
// whether an actor that stops or restarts has children left.
var noChild = &actor.PID{}

// invoke passes a system message to protoactor. If user code ends the goroutine there
// (runtime.Goexit), protoactor does not come to what it does next, and invoke does it.
func (q *queueBody) invoke(message any) {
	var done bool
	defer func() {
		switch {
		case done:
		case q.is(dead):
			q.spec.system.post(q.spec.parentID, &actor.Terminated{Who: q.invoker.(actor.Context).Self()})
		case q.is(stopping | restarting):
			for _, child := range q.invoker.(actor.Context).Children() {
				q.spec.system.carryOut(child, Stop)
			}
			q.invoke(&actor.Terminated{Who: noChild})
		}
	}()
	q.invoker.InvokeSystemMessage(message)
	done = true
}

// carryOut applies a directive to a child that failed. If the child has
// stopped meanwhile nothing is sent: it would be a dead letter.
func (s *System) carryOut(child *actor.PID, d Directive) {
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

// post sends a system message to the actor with the given ID, if it exists.
func (s *System) post(id ID, message any) {
	if process, ok := s.proto.ProcessRegistry.GetLocal(id.String()); ok {
		process.SendSystemMessage(nil, message)
	}
}

// releasePID is sent to an actor that has stopped: see releaseChild.
type releasePID struct{}

// releaseChild makes the PID of a child that has stopped drop its reference to
// it. Protoactor's set of children keeps removed PIDs in the spare capacity of
// its slice, and a PID that was sent to keeps its actor until the next send.
func (s *System) releaseChild(child *actor.PID) { s.proto.Root.Send(child, releasePID{}) }
