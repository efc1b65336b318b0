package bench

import "context"

// Object is what every system stores, in a type of its own that says the same.
// It is small, so that what is measured is the system and not the copying.
type Object struct {
	// Name is unique; the key is Namespace/Name.
	Name string
	// Node is the field spec.nodeName, which every system indexes.
	Node string
	// App is the label app, which no cache has an index on.
	App string
	// Seq says which write of the run this is, from 0; [Unmeasured] if none.
	Seq int64
}

// Namespace is that of all objects.
const Namespace = "default"

// Unmeasured is the Seq of writes that only prepare a run.
const Unmeasured = -1

// Key returns the object's key.
func (o Object) Key() string { return Namespace + "/" + o.Name }

// Selection says which objects a list or a watch is about: all, those on one
// node (by the index), or those of one app (by a label selector).
type Selection struct{ Node, App string }

// Store is a system that keeps objects and tells of their changes. Its methods
// are safe for concurrent use.
type Store interface {
	// Write stores o, whether there was an object of its key or not, and returns
	// the revision of the write.
	Write(ctx context.Context, o Object) (uint64, error)
	// Watch calls handle with the Seq of every change after revision from; zero
	// means now. A nil handle makes a watch that nobody reads. The handler does
	// not block.
	Watch(ctx context.Context, what Selection, from uint64, handle func(seq int64)) (Watch, error)
	// List reads objects from the cache, as old as it may be, and returns how
	// many there are.
	List(ctx context.Context, what Selection) (int, error)
	// Get reads an object from the cache, as old as it may be.
	Get(ctx context.Context, key string) (Object, error)
	// Settle blocks until nothing is left of the watches that were stopped.
	Settle(ctx context.Context) error
	// WaitFor blocks until lists and gets show the write that returned rev.
	WaitFor(ctx context.Context, rev uint64) error
	// Close ends all watches and frees everything.
	Close() error
}

// Watch is a running watch.
type Watch interface {
	// Done returns a channel that is closed when the watch has ended and its
	// handler has seen all that it will. It says nothing for a watch without a
	// handler.
	Done() <-chan struct{}
	// Drain reads n events of a watch without a handler and returns how many
	// there were: fewer if the system has ended the watch, or ctx is done.
	Drain(ctx context.Context, n int) int
	// Stop ends the watch.
	Stop()
}

// Informer is a system that mirrors a storage for handlers in the process. Its
// methods are safe for concurrent use, but for Start.
type Informer interface {
	// Write stores o in the storage, and returns the revision of the write.
	Write(ctx context.Context, o Object) (uint64, error)
	// Start mirrors the storage and tells each of healthy, and slow, the Seq of
	// every object that there is and then of every change. The healthy miss
	// nothing; what slow misses is up to the system. It is called once, after the
	// storage was filled.
	Start(ctx context.Context, healthy []func(seq int64), slow func(seq int64)) error
	// Close ends everything. It waits for handlers that are running.
	Close() error
}

// Contender is one system under test. It takes part in the workloads that its
// constructors allow; nil is for those that it cannot do.
type Contender struct {
	// Name is what it is called in tables.
	Name string
	// Store opens an empty store whose cache is ready.
	Store func(ctx context.Context) (Store, error)
	// Windowed is Store with a history of so many events. Bare makes what need not
	// be counted as the cache's: live objects, in storage if that is not a part of
	// the system, and superseded ones.
	Windowed func(ctx context.Context, events int) (Store, error)
	Bare     func(live, superseded int) any
	// Bus opens a bus.
	Bus func(ctx context.Context) (Bus, error)
	// Informer opens an informer that has not been started, over empty storage.
	Informer func(ctx context.Context) (Informer, error)
}
