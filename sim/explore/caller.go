package explore

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/actors"
)

// errLeft is why a caller's context ends.
var errLeft = errors.New("the caller has left")

// caller is the context of a call, which ends when the scenario says so. Where another
// context would start a goroutine for each AfterFunc, a caller submits a turn, which the
// scheduler draws like others: so the end of a watch by its context has an interleaving
// that the seed decides.
type caller struct {
	context.Context
	end   context.CancelCauseFunc
	sched *scheduler
	ends  []*contextEnd
	// left: the context has ended.
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

// submit gives the scheduler the function of an AfterFunc to call, unless that was
// stopped.
func (c *caller) submit(e *contextEnd) {
	if !e.due {
		e.due = true
		c.sched.Submit(e)
	}
}

// contextEnd is the function of one AfterFunc of a caller. It is due once it was submitted
// or stopped: it is not submitted again.
type contextEnd struct {
	call func()
	due  bool
}

// RunTurn calls the function.
func (e *contextEnd) RunTurn() { e.call() }

// ActorID returns zero: the turn is not an actor's.
func (e *contextEnd) ActorID() actors.ID { return 0 }

func (e *contextEnd) String() string { return "a context's end" }
