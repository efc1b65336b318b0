package actors

import (
	"context"
	"fmt"
	"sync"
)

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
// actor never overlap, whichever executor it is.
//
// All methods are safe for concurrent use.
type Executor interface {
	// Submit arranges for t.RunTurn to be called once. It never blocks and never
	// calls RunTurn itself.
	Submit(t Task)
	// SubmitAll submits several tasks at once, in order. It does not keep the
	// slice.
	SubmitAll(tasks []Task)
	// Throughput is the number of messages, at least 1, that one turn may handle
	// before it ends. It is called once per turn.
	Throughput() int
}

// DefaultThroughput is the Throughput of [Pool] and [Blocking]. It is large
// enough that the cost of queueing a turn (about 100 ns) hardly shows, and small
// enough that an actor with a flood of messages delays its neighbours by
// microseconds.
const DefaultThroughput = 64

// Blocking is an [Executor] that runs each turn on a goroutine of its own, for
// actors whose turns may block: on I/O, or in user code. An idle actor uses no
// goroutine on it either; a busy one costs about 500 ns more per turn than on a
// [Pool].
//
// The zero value is ready to use.
type Blocking struct {
	mu   sync.Mutex
	busy int
	idle chan struct{} // closed when busy falls to 0; made by the first Close
}

// NewBlocking returns a Blocking executor with no turns running.
func NewBlocking() *Blocking { return new(Blocking) }

// Throughput returns [DefaultThroughput].
func (b *Blocking) Throughput() int { return DefaultThroughput }

// Submit starts a goroutine that runs t.
func (b *Blocking) Submit(t Task) {
	b.mu.Lock()
	b.busy++
	b.mu.Unlock()
	go b.run(t)
}

// SubmitAll starts a goroutine for each task.
func (b *Blocking) SubmitAll(tasks []Task) {
	for _, t := range tasks {
		b.Submit(t)
	}
}

// Running returns the number of turns submitted and not yet ended.
func (b *Blocking) Running() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy
}

// Close waits until no turn is left. If ctx ends first, the error wraps
// [ErrStillRunning] and ctx's cause and says how many are left; Close may then
// be called again. A Submit after Close still runs.
func (b *Blocking) Close(ctx context.Context) error {
	select {
	case <-b.drained():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %d blocking turns: %w", ErrStillRunning, b.Running(), context.Cause(ctx))
	}
}

func (b *Blocking) run(t Task) {
	defer b.finish() // even if the turn ends its goroutine
	t.RunTurn()
}

func (b *Blocking) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
	if b.busy == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// drained returns a channel that is closed as soon as no turn is left.
func (b *Blocking) drained() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	return b.idle
}
