package actors

import (
	"log/slog"

	"github.com/watchmill/watchmill/clock"
)

// Behavior is the code of an actor with a queue. All its methods are called
// from the actor's turns: never two at once, and each sees the effects of the
// one before. On the default executor they must not block.
//
// A Behavior may have more methods, each found by its interface: [Starter],
// [Flusher], [Stopper], [Ender], [Restarter], [Supervisor], [ChildObserver] and
// [Dropper]. A [Waker] may have all of them but Flusher, Restarter and Dropper.
//
// A panic in any of them is contained: see the package's section on
// supervision.
type Behavior[M any] interface {
	// Receive handles one message.
	Receive(ctx *Context, msg M)
}

// Waker is the code of a wake actor: an actor that gets no messages and finds its
// work elsewhere, for example in a log that it reads at a cursor. It may have the
// optional methods that [Behavior] names, but is never restarted, since nothing
// makes a new one.
type Waker interface {
	// Woken is called in a turn of its own some time after a Wake. If again is
	// true it is called once more, after the other actors have had their turns.
	Woken(ctx *Context) (again bool)
}

// Starter is called before the first message, and again after a restart.
type Starter interface{ Started(ctx *Context) }

// Flusher is called when a turn that handled at least one message ends, because
// the queue is empty or the turn's quota is used up. A behavior that collects in
// Receive and acts in Flush so works in batches that grow with its load. A turn
// that ends in a stop or a failure is not flushed.
type Flusher interface{ Flush(ctx *Context) }

// Stopper is called when the actor has been told to stop. Its children still
// exist; no more messages will come. It cannot spawn.
type Stopper interface{ Stopping(ctx *Context) }

// Ender is called last, when all children have stopped.
type Ender interface{ Stopped(ctx *Context) }

// Restarter is called before the behavior is discarded for a new one. Its
// children still exist and will be stopped.
type Restarter interface{ Restarting(ctx *Context) }

// ChildObserver is called for each child that has stopped, for whatever reason.
type ChildObserver interface {
	ChildStopped(ctx *Context, child ID)
}

// Supervisor decides about children that fail. Without one they are stopped.
type Supervisor interface {
	// ChildFailed gets the child that failed and the value of its panic, or
	// [usercode.ErrGoexit]. It is not called while the supervisor itself is stopping or
	// restarting: then the child stops. If it panics, the child stops and the
	// supervisor has failed too.
	ChildFailed(ctx *Context, child ID, reason any) Directive
}

// Dropper gets the messages that were accepted but will not be received because
// the actor stops: each exactly once, in order, before Stopped. It is the place
// to answer reply channels. If the actor stops before its behavior was made,
// one is made to drop its messages; Dropped and Stopped may then be called outside a
// turn. If that cannot be made, they are not called.
type Dropper[M any] interface{ Dropped(msg M) }

// Context is an actor's access to itself and its system. It is valid only in
// the calls that it is passed to: its methods must not be called from other
// goroutines, nor after the call has returned.
type Context cell

func (c *cell) context() *Context { return (*Context)(c) }

func (x *Context) cell() *cell { return (*cell)(x) }

// Self returns the actor's ID.
func (x *Context) Self() ID { return x.id }

// Name returns the actor's name after those of its ancestors, separated by
// slashes. A wake actor's own name is its ID.
func (x *Context) Name() string { return x.cell().name() }

// System returns the system that the actor lives in.
func (x *Context) System() *System { return x.spec.system }

// Clock returns the system's clock.
func (x *Context) Clock() clock.Clock { return x.spec.system.Clock() }

// Logger returns the system's logger with the actor's name as attribute
// "actor". It makes a new one on every call.
func (x *Context) Logger() *slog.Logger {
	return x.spec.system.Logger().With("actor", x.Name())
}

// Failure returns the failure because of which this actor is being restarted or stopped, also
// if it was told to stop before its parent had decided about the failure. Otherwise it is nil
// if the actor was told to stop, or its parent stops. It is meant for Restarting, Stopping and
// Stopped. A wake actor's is always nil.
func (x *Context) Failure() *Failure {
	q, ok := x.body.(*queueBody)
	if !ok || !x.cell().is(suspended) {
		return nil
	}
	return q.failure
}

// Children returns the number of children that have not stopped, including
// those that are stopping.
func (x *Context) Children() int { return x.cell().children() }

// Stop tells the actor itself to stop when this call has returned. Messages
// after the current one are dropped.
func (x *Context) Stop() { x.cell().post(stopMessage) }
