package informer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/usercode"
)

// listener is a handler's actor. It runs on the executor for code that may block,
// and has a goroutine only while there is something to deliver.
type listener struct {
	box      actors.WakeBox
	informer *sharedInformer
	options  HandlerOptions
	handle   func(notification)
	pending  pending

	// dropped: the handler must not be called again. draining: it gets what is
	// pending, and no more.
	dropped, draining atomic.Bool
	// removed: Stop or Remove was called.
	removed atomic.Bool
	// running: the handler is being called.
	running atomic.Bool
	// synced: it has handled the state that it started with.
	synced atomic.Bool
	// panicked is its last panic.
	panicked atomic.Pointer[HandlerError]

	resync actors.Timer
	// resyncFired is closed when resync has fired.
	resyncFired chan struct{}
	resyncDue   atomic.Bool

	startedOnce, doneOnce sync.Once
	started               chan struct{} // closed when synced, or at the end
	done                  chan struct{} // closed at the end
	end                   error         // why it ended; read it after done
}

// Started arms the first resync.
func (l *listener) Started(ctx *actors.Context) { l.armResync(ctx) }

func (l *listener) armResync(ctx *actors.Context) {
	if l.options.Resync > 0 {
		fired := make(chan struct{})
		l.resyncFired = fired
		l.resync = ctx.Clock().AfterFunc(l.options.Resync, func() {
			l.resyncDue.Store(true)
			l.box.Wake()
			close(fired)
		})
	}
}

// Woken makes one delivery.
func (l *listener) Woken(ctx *actors.Context) (again bool) {
	draining := l.draining.Load() // before taking: nothing is offered after that
	if l.resyncDue.Swap(false) && !draining {
		l.pending.requestResync()
		l.armResync(ctx)
	}
	next, ok := l.take()
	if ok {
		l.run(next)
	}
	if l.dropped.Load() || !ok && draining {
		ctx.Stop()
		return false
	}
	return ok
}

func (l *listener) take() (delivery, bool) {
	if l.dropped.Load() {
		return delivery{}, false
	}
	return l.pending.take()
}

// run makes a delivery; after a panic it goes on with the next notification.
func (l *listener) run(next delivery) {
	l.running.Store(true)
	for i := 0; i < next.n && !l.dropped.Load(); {
		i = l.attempt(next, i)
	}
	l.running.Store(false)
	l.pending.left.Store(0)
	if next.start && !l.dropped.Load() {
		l.synced.Store(true)
		l.endStart()
	}
	if l.pending.released() {
		l.informer.actor.Tell(recheck{})
	}
}

// attempt makes a delivery from i on, until the end, a panic, or the listener is
// dropped. It returns where to go on.
func (l *listener) attempt(d delivery, i int) (next int) {
	next = i
	err := usercode.Call("EventHandler", "", func() {
		for next < d.n && !l.dropped.Load() {
			n := d.at(next)
			next++
			l.handle(n)
			l.pending.left.Store(int64(d.n - next))
		}
	})
	var panicked *usercode.PanicError
	if errors.As(err, &panicked) {
		n := d.at(next - 1)
		panicked.Key, panicked.Revision = n.key(), uint64(n.Object.Revision)
		l.failed(n.String(), panicked)
	}
	return next
}

// failed notes a panic.
func (l *listener) failed(notification string, err error) {
	failure := &HandlerError{Handler: l.options.Name, Notification: notification, Err: err}
	l.panicked.Store(failure)
	if l.options.OnPanic == EndHandler {
		l.dropped.Store(true)
	}
	l.informer.report(failure)
}

// died notes that the handler has ended its goroutine.
func (l *listener) died(reason any) {
	err, ok := reason.(error)
	if !ok {
		err = fmt.Errorf("%v", reason)
	}
	l.dropped.Store(true)
	l.failed("", err)
}

// offer passes a batch on. It never waits.
func (l *listener) offer(b *batch) {
	if lag, slow := l.pending.offer(b); slow {
		l.informer.report(&SlowHandlerError{Handler: l.options.Name, Policy: l.options.Policy, Lag: lag})
	}
	l.box.Wake()
}

// drain lets the handler end when it has handled what is pending.
func (l *listener) drain() {
	l.draining.Store(true)
	l.box.Wake()
}

// Stopping disarms the resync, or waits until it has fired, so that nothing of it
// is left.
func (l *listener) Stopping(*actors.Context) {
	if l.resync != nil && !l.resync.Stop() {
		<-l.resyncFired
	}
}

// Stopped ends the calls that wait for the end.
func (l *listener) Stopped(*actors.Context) { l.finish(ErrClosed) }

// finish ends the registration. The reason counts unless the handler was removed.
func (l *listener) finish(reason error) {
	l.doneOnce.Do(func() {
		l.running.Store(false)
		l.end = reason
		if l.removed.Load() {
			l.end = ErrRemoved
		}
		l.informer.forget(l)
		close(l.done)
		l.endStart()
	})
}

// endStart ends the calls that wait for the handler to have its first state.
func (l *listener) endStart() { l.startedOnce.Do(func() { close(l.started) }) }
