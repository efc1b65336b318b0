package actors

import (
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// registryBuckets is how many maps of 32 shards a registry has. Protoactor's own
// has 1024, so that an empty one is 32,768 locked maps in 3 MB, which take a
// millisecond to make; with these it is 25 KB. So many locks are more than
// enough for what goes through a registry: spawns and stops, but no messages.
const registryBuckets = 8

// archetype is the one system that protoactor makes itself; nothing runs on it.
// It would log to stderr, so it is silent.
var archetype = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
})

// newActorSystem makes a system like the archetype with parts of its own. It
// must not be Shutdown, which would do nothing but to close what they share.
//
// Its event stream has no subscribers, so that a dead letter is just nothing:
// protoactor would start a goroutine to count them. There are some whatever we
// do, since a parent that stops tells even children whose end it has not heard
// of yet.
func newActorSystem() *actor.ActorSystem {
	proto := *archetype()
	s := &proto
	s.ProcessRegistry = &actor.ProcessRegistryValue{ActorSystem: s, Address: s.ProcessRegistry.Address, LocalPIDs: newRegistry()}
	s.Root = actor.NewRootContext(s, actor.EmptyMessageHeader)
	s.Guardians = actor.NewGuardians(s)
	renew(&s.EventStream)
	s.DeadLetter = actor.NewDeadLetter(s)
	renew(&s.EventStream) // without the subscriptions of the line above
	return s
}

// newRegistry returns an empty registry.
func newRegistry() *actor.SliceMap {
	r := &actor.SliceMap{LocalPIDs: make([]cmap.ConcurrentMap, registryBuckets)}
	for i := range r.LocalPIDs {
		r.LocalPIDs[i] = cmap.New()
	}
	return r
}

// renew replaces what p points to by its zero value.
func renew[T any](p **T) { *p = new(T) }
