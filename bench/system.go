package bench

import (
	"context"
	"net/http"
)

// Object is the object that every system stores, in an equivalent type of its own. It is
// small, so that copying it hardly affects what is measured.
type Object struct {
	// Name is unique; the key is Namespace/Name.
	Name string
	// Node is the field spec.nodeName, which every system indexes.
	Node string
	// App is the label app, which no cache indexes.
	App string
	// Seq is the number of the write in the run, from 0, or [Unmeasured].
	Seq int64
}

// Namespace is the namespace of all objects.
const Namespace = "default"

// Unmeasured is the Seq of writes that only prepare a run.
const Unmeasured = -1

// Key returns the object's key.
func (o Object) Key() string { return Namespace + "/" + o.Name }

// Selection selects the objects of a list or a watch: all, those on one
// node (by the index), or those of one app (by a label selector).
type Selection struct{ Node, App string }

// Store is a system that stores objects and serves watches. Its methods are safe
// for concurrent use.
type Store interface {
	// Write creates or updates o and returns the revision of the write.
	Write(ctx context.Context, o Object) (uint64, error)
	// Watch calls handle with the Seq of every change after revision from; zero
	// means now. A nil handle makes a watch without a consumer. The handler does
	// not block.
	Watch(ctx context.Context, what Selection, from uint64, handle func(seq int64)) (Watch, error)
	// List reads objects from the cache, however stale, and returns their number.
	List(ctx context.Context, what Selection) (int, error)
	// Get reads an object from the cache, however stale.
	Get(ctx context.Context, key string) (Object, error)
	// Settle blocks until stopped watches have been cleaned up.
	Settle(ctx context.Context) error
	// WaitFor blocks until lists and gets show the write that returned rev.
	WaitFor(ctx context.Context, rev uint64) error
	// Close ends all watches and frees everything.
	Close() error
}

// Watch is a running watch.
type Watch interface {
	// Done returns a channel that is closed when the watch has ended and its
	// handler has returned for the last time. It is undefined for a watch without
	// a handler.
	Done() <-chan struct{}
	// Drain reads n events of a watch without a handler and returns how many it
	// received: fewer if the system has ended the watch, or ctx is done.
	Drain(ctx context.Context, n int) int
	// Stop ends the watch.
	Stop()
}

// Informer is a system that caches a storage for handlers in the process. Its
// methods are safe for concurrent use, except Start.
type Informer interface {
	// Write stores o in the storage, and returns the revision of the write.
	Write(ctx context.Context, o Object) (uint64, error)
	// Start caches the storage and calls each of healthy, and slow, with the Seq
	// of every existing object and then of every change. The healthy handlers miss
	// nothing; what slow misses is up to the system. It is called once, after the
	// storage was filled.
	Start(ctx context.Context, healthy []func(seq int64), slow func(seq int64)) error
	// Close stops the system and waits for running handlers.
	Close() error
}

// Server is a system that serves its objects over HTTP in the Kubernetes API
// protocol. Writes are calls in the process, so that only reading is measured.
type Server interface {
	// Write creates or updates o and returns the revision of the write.
	Write(ctx context.Context, o Object) (uint64, error)
	// WaitFor blocks until lists and watches show the write that returned rev.
	WaitFor(ctx context.Context, rev uint64) error
	// Handler answers requests, and Path is the path of all objects. The annotation
	// [SeqAnnotation] of an object has its Seq.
	Handler() http.Handler
	Path() string
	// Close ends all watches and frees everything.
	Close() error
}

// Durable is a system that stores objects on disk.
type Durable interface {
	// Writer returns a function that writes an object that no other writer writes, for one
	// goroutine. When it returns, the write survives a power cut.
	Writer() func(ctx context.Context, o Object) error
	// Close closes the storage. No writer may be running any more.
	Close() error
}

// Contender is one system under test. A nil constructor excludes it from the
// workloads that need it.
type Contender struct {
	// Name is the name in tables.
	Name string
	// Store opens an empty store whose cache is ready.
	Store func(ctx context.Context) (Store, error)
	// Windowed is Store with a history of that many events. Bare makes the objects
	// that do not count as the cache's overhead: the live ones, with their storage if
	// that is not a part of the system, and the superseded ones.
	Windowed func(ctx context.Context, events int) (Store, error)
	Bare     func(live, superseded int) any
	// Fed is Store over a stub in place of storage, which passes writes on to the cache and
	// keeps as little as it can.
	Fed func(ctx context.Context) (Store, error)
	// Server opens an empty server whose cache is ready.
	Server func(ctx context.Context) (Server, error)
	// Custom starts a server of a custom kind, without any objects.
	Custom func(ctx context.Context) (*Endpoint, error)
	// Bus opens a bus.
	Bus func(ctx context.Context) (Bus, error)
	// Durable opens empty storage in a directory, which is empty, too.
	Durable func(ctx context.Context, dir string) (Durable, error)
	// Informer opens an informer that has not been started, over empty storage, and
	// FedInformer over a stub as for Fed.
	Informer, FedInformer func(ctx context.Context) (Informer, error)
}
