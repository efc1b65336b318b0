package execution

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/actors"
)

// ErrCanceled is the cause with which a caller's context ends.
var ErrCanceled = errors.New("the caller has canceled")

// Caller is the context of a call, which ends when the scenario says so. Where another
// context would start a goroutine for each AfterFunc, a caller submits a turn, which the
// scheduler draws like any other. So the seed decides when the end of a context reaches
// its watch.
type Caller struct {
	context.Context
	end   context.CancelCauseFunc
	sched *Scheduler
	ends  []*contextEnd
	// Canceled: the context has ended.
	Canceled bool
}

// NewCaller returns a context that has not ended.
func NewCaller(s *Scheduler) *Caller {
	ctx, end := context.WithCancelCause(context.Background())
	return &Caller{Context: ctx, end: end, sched: s}
}

// AfterFunc arranges for f to be called, in a turn, after the context has ended, as
// [context.AfterFunc] does.
func (c *Caller) AfterFunc(f func()) (stop func() bool) {
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

// Cancel ends the context and submits the functions of its AfterFuncs.
func (c *Caller) Cancel() {
	c.end(ErrCanceled)
	for _, e := range c.ends {
		c.submit(e)
	}
}

// submit submits the function of an AfterFunc as a turn, unless it was submitted or
// stopped before.
func (c *Caller) submit(e *contextEnd) {
	if !e.due {
		e.due = true
		c.sched.Submit(e)
	}
}

// contextEnd is the function of one AfterFunc of a caller. It is due once it has been
// submitted or stopped, after which it is not submitted again.
type contextEnd struct {
	call func()
	due  bool
}

// RunTurn calls the function of the AfterFunc.
func (e *contextEnd) RunTurn() { e.call() }

// ActorID returns zero: the turn is not an actor's.
func (e *contextEnd) ActorID() actors.ID { return 0 }

func (e *contextEnd) String() string { return "a context's end" }
