package actors

// Behavior is what an actor with a queue does. All its methods are called from
// the actor's turns: never two at once, and each sees what the one before did.
// On the default executor they must not block.
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

// Starter is called before the first message, also after a restart.
type Starter interface{ Started(ctx *Context) }

// Flusher is called when a turn that handled at least one message ends, because
// the queue was found empty or the turn's quota was used up. A behavior that
// gathers in Receive and acts in Flush so works in batches that grow with its
// load. A turn that ends in a stop or a failure is not flushed.
type Flusher interface{ Flush(ctx *Context) }

// Stopper is called when the actor has been told to stop. Its children are
// still there; no message will come any more. It may not spawn.
type Stopper interface{ Stopping(ctx *Context) }

// Ender is called last, when all children are gone.
type Ender interface{ Stopped(ctx *Context) }

// Restarter is called before the behavior is discarded for a new one. Its
// children are still there and will be stopped.
type Restarter interface{ Restarting(ctx *Context) }

// ChildObserver is told of each child that is gone, for whatever reason.
type ChildObserver interface {
	ChildStopped(ctx *Context, child ID)
}

// Supervisor decides about children that fail. Without one they are stopped.
type Supervisor interface {
	// ChildFailed is told which child failed and the value of its panic, or
	// [ErrGoexit]. It is not asked while the supervisor is itself stopping or
	// restarting: then the child stops. If it panics, the child stops and the
	// supervisor has failed too.
	ChildFailed(ctx *Context, child ID, reason any) Directive
}

// Dropper gets the messages that were accepted but will not be received because
// the actor stops: each exactly once, in order, before Stopped. It is the place
// to answer reply channels. If the actor never got as far as to have a
// behavior, one is made for this alone; it may then be called outside a turn.
type Dropper[M any] interface{ Dropped(msg M) }
