package actors

import "log/slog"

// Context is what an actor knows and can do. It is valid only in the calls that
// it is passed to: its methods must not be called from other goroutines, nor
// after the call has returned.
type Context cell

func (c *cell) context() *Context { return (*Context)(c) }

func (x *Context) cell() *cell { return (*cell)(x) }

// Self returns the actor's ID.
func (x *Context) Self() ID { return x.id }

// Name returns the actor's name, behind those of its ancestors, separated by
// slashes. A wake actor's own name is its ID.
func (x *Context) Name() string { return x.cell().name() }

// System returns the system that the actor lives in.
func (x *Context) System() *System { return x.origin.system }

// Clock returns the system's clock.
func (x *Context) Clock() Clock { return x.origin.system.Clock() }

// Logger returns the system's logger with the actor's name as attribute
// "actor". It makes a new one on every call.
func (x *Context) Logger() *slog.Logger {
	return x.origin.system.Logger().With("actor", x.Name())
}

// Children returns the number of children that are not gone, including those
// that are stopping.
func (x *Context) Children() int { return x.cell().children() }

// StopChild tells a child to stop. It does nothing if id is not that of a child
// of this actor, or of one that is gone.
func (x *Context) StopChild(id ID) {
	x.origin.system.post(id, &dismissal{parent: x.id})
}

// Stop tells the actor itself to stop when this call has returned. Messages
// behind the current one are dropped.
func (x *Context) Stop() { x.cell().post(stopMessage) }
