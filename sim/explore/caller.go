package explore

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/actors"
)

// errLeft is why a caller's context ends.
var errLeft = errors.New("the caller has left")

// caller is the context of a call, which ends when the scenario says so. What is to
// happen then is a turn that the scheduler draws like others, where another context
// would start a goroutine: so the end of a watch by its context has an interleaving,
// too.
type caller struct {
	context.Context
	end   context.CancelCauseFunc
	sched *scheduler
	ends  []*contextEnd
	// left: the scenario has said so.
	left bool
}

func newCaller(s *scheduler) *caller {
	ctx, end := context.WithCancelCause(context.Background())
	return &caller{Context: ctx, end: end, sched: s}
}

// AfterFunc has f be called when the caller has left, as [context.AfterFunc] does.
func (c *caller) AfterFunc(f func()) (stop func() bool) {
	e := &contextEnd{call: f}
	c.ends = append(c.ends, e)
	if c.Err() != nil {
		c.submit(e)
	}
	return func() bool {
		stopped := !e.due
		e.due = true
		return stopped
	}
}

// leave ends the context.
func (c *caller) leave() {
	c.end(errLeft)
	for _, e := range c.ends {
		c.submit(e)
	}
}

// submit has the scheduler call what is to happen, unless that is stopped.
func (c *caller) submit(e *contextEnd) {
	if !e.due {
		e.due = true
		c.sched.Submit(e)
	}
}

// contextEnd is what happens at the end of a context. It is due if it was submitted
// or is not wanted any more.
type contextEnd struct {
	call func()
	due  bool
}

// RunTurn calls it.
func (e *contextEnd) RunTurn() { e.call() }

// ActorID is that of no actor.
func (e *contextEnd) ActorID() actors.ID { return 0 }

func (e *contextEnd) String() string { return "a context's end" }
