package actors

// Task is something that has a turn to run. In this package that is always an
// actor's mailbox, and one turn is one run of it: its system messages, then as
// many of its messages as the executor's Throughput allows.
//
// The turns of actors also have the methods ActorID() [ID] and String() string,
// the actor's name, for executors that report what they run.
//
// A Task is a pointer, so that queueing one does not allocate. RunTurn must
// not panic; turns of actors contain the panics of user code.
type Task interface{ RunTurn() }

// Executor runs turns. An actor has at most one turn submitted or running at
// any time, so an executor needs no bound of its own and the turns of one
// actor never overlap, whichever executor it is. A turn on a [Pool] may also run
// on no worker of it, for [Ref.Ask].
//
// All methods are safe for concurrent use. It never gains methods.
type Executor interface {
	// Submit arranges for t.RunTurn to be called once. It never blocks and never
	// calls RunTurn itself.
	Submit(t Task)
	// SubmitAll submits several tasks at once, in order. It does not keep the
	// slice.
	SubmitAll(tasks []Task)
	// Throughput is the number of messages, at least 1, that one turn may handle
	// before it ends. It is called at most once per turn.
	Throughput() int
}

// DefaultThroughput is the Throughput of [Pool] and [Blocking]. It is large
// enough that the cost of queueing a turn (about 100 ns) hardly shows, and small
// enough that an actor with a flood of messages delays its neighbours by
// microseconds.
const DefaultThroughput = 64
