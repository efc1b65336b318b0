package execution

import (
	"runtime"

	"github.com/watchmill/watchmill/actors"
)

// A watch's channel has a goroutine behind it. That goroutine runs only while the consumer
// receives, until it has sent an event, waits or ends, and nothing else runs meanwhile. So
// a seed determines the execution with channels, too.
//
//	consumer ──resume──▶ goroutine: takes events of the watch ──▶ channel ──▶ consumer
//	         ◀──pause─── before it sends an event, and while there is none

// lockstep runs the goroutine of a channel in lockstep with its consumer.
type lockstep struct {
	task            actors.Task
	started         bool
	resumed, paused chan struct{}
	// over is closed when the goroutine has ended. If a panic ended it, panicked has the
	// value and was set before.
	over     chan struct{}
	panicked any
	// abandoned: the goroutine must end when it is resumed.
	abandoned bool
}

func newLockstep(t actors.Task) *lockstep {
	return &lockstep{task: t, resumed: make(chan struct{}), paused: make(chan struct{}), over: make(chan struct{})}
}

// resume starts the goroutine, or lets it continue after a pause. It does not wait: the
// next pause or end arrives on paused or over.
func (l *lockstep) resume() {
	if l.started {
		l.resumed <- struct{}{}
		return
	}
	l.started = true
	go func() {
		defer close(l.over)
		defer func() { l.panicked = recover() }()
		l.task.RunTurn()
	}()
}

// pause is called by the goroutine itself, and returns when it is resumed.
func (l *lockstep) pause() {
	l.paused <- struct{}{}
	<-l.resumed
	if l.abandoned {
		runtime.Goexit()
	}
}

// abandon ends the goroutine where it has paused, and waits for its end.
func (l *lockstep) abandon() {
	l.abandoned = true
	if l.started && !l.isOver() {
		l.resumed <- struct{}{}
		<-l.over
	}
}

func (l *lockstep) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// Channel is a watch's channel with the goroutine that sends to it.
type Channel[E any] struct {
	events <-chan E
	sender *lockstep
	sched  *Scheduler
}

// NewChannel returns the channel with its goroutine. It takes the task that was submitted to
// the scheduler last, which must be that goroutine.
func NewChannel[E any](s *Scheduler, events <-chan E) *Channel[E] {
	c := &Channel[E]{events: events, sender: s.unclaimed, sched: s}
	s.unclaimed = nil
	return c
}

// Receive lets the goroutine run and returns the event that it sends, if it sends one, and
// whether the goroutine may send more. With ended set it receives no event: after the end
// of a watch the goroutine's select has both cases ready, so whether it sends another event
// or closes the channel is random.
func (c *Channel[E]) Receive(ended bool) (ev E, received, open bool) {
	l := c.sender
	events := c.events
	if ended {
		events = nil
	}
	c.sched.running = l
	defer func() {
		c.sched.running = nil
		if l.panicked != nil {
			panic(l.panicked)
		}
	}()
	if !l.isOver() {
		l.resume()
	}
	select {
	case ev, received = <-events:
		select {
		case <-l.paused:
		case <-l.over:
		}
	case <-l.paused:
	case <-l.over:
	}
	return ev, received, received || !l.isOver()
}

// IsClosed reports whether the channel is closed. An event that is in it is lost.
func (c *Channel[E]) IsClosed() bool {
	_, open := <-c.events
	return !open
}

// Abandon ends the goroutine behind the channel, if it is left.
func (c *Channel[E]) Abandon() { c.sender.abandon() }
