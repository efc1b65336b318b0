package explore

import (
	"runtime"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// A watch's channel has a goroutine behind it. In a world that goroutine runs only while
// the consumer receives, until it has sent an event, waits or ends, and nothing else runs
// meanwhile. So a seed determines the execution with channels, too.
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
	if l.abandoned = true; l.started && !l.isOver() {
		l.resumed <- struct{}{}
		<-l.over
	}
}

// channel is a watch's channel with the goroutine that sends to it.
type channel[T any] struct {
	events <-chan engine.Event[T]
	sender *lockstep
	sched  *scheduler
}

// channelOf returns the channel of a watch. Chan has just submitted the channel's goroutine
// to the scheduler, which kept it for this.
func (w *World[T]) channelOf(handle *engine.Watch[T]) *channel[T] {
	c := &channel[T]{events: handle.Chan(), sender: w.sched.function, sched: w.sched}
	w.sched.function = nil
	return c
}

// receive lets the goroutine run and returns the event that it sends, if it sends one, and
// whether the goroutine may send more. With ended set it receives no event: after the end
// of a watch the goroutine's select has both cases ready, so whether it sends another event
// or closes the channel is random.
func (c *channel[T]) receive(ended bool) (ev engine.Event[T], received, open bool) {
	l := c.sender
	events := c.events
	if ended {
		events = nil
	}
	c.sched.stepping = l
	defer func() {
		c.sched.stepping = nil
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

func (l *lockstep) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// pauses is how often in a row the goroutine of a channel may pause without sending
// although it need not wait for the engine.
const pauses = 3

// takeFromChannel lets the consumer receive at most n events.
func (w *World[T]) takeFromChannel(r *watch[T], n int) {
	defer w.claim(r)
	for paused := 0; n > 0; {
		ev, received, open := r.channel.receive(r.handle.Err() != nil)
		switch {
		case received:
			paused = 0
			n--
			if w.deliver(r, ev); len(r.Events)%3 == 0 {
				w.claim(r)
			}
		case !open:
			w.closed(r)
			return
		case paused < pauses:
			paused++
		case w.sched.Run() == 0:
			return
		default:
			paused = 0
		}
	}
}

// closed checks that the channel of r is closed and that r has ended.
func (w *World[T]) closed(r *watch[T]) {
	if _, open := <-r.channel.events; open || r.handle.Err() == nil {
		w.fail(judge.Failed(judge.Ends, r.Name, "its channel should be closed and its watch have ended; open: %v, ended for %v", open, r.handle.Err()))
		return
	}
	w.ended(r, w.endError(r, r.handle.Err()))
}

// abandon ends the goroutines behind channels that are left when the world ends.
func (w *World[T]) abandon() {
	for _, r := range w.started {
		if r.channel != nil {
			r.channel.sender.abandon()
		}
	}
}
