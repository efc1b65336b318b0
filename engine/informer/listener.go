package informer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

// listener is a handler's actor. It runs on the executor for code that may block,
// and has a goroutine only while there are notifications to deliver.
type listener struct {
	box      actors.WakeBox
	informer *sharedInformer
	options  HandlerOptions
	handle   func(notification)
	pending  pending

	// dropped: the handler must not be called again. draining: it gets only the
	// notifications that are pending already.
	dropped, draining atomic.Bool
	// removed: Stop or Remove was called.
	removed atomic.Bool
	// running: the handler is being called.
	running atomic.Bool
	// synced: the handler has handled its initial state.
	synced atomic.Bool
	// panicked is its last panic.
	panicked atomic.Pointer[PanicError]

	resync clock.Timer
	// resyncFired is closed when resync has fired.
	resyncFired chan struct{}
	resyncDue   atomic.Bool

	startedOnce, doneOnce sync.Once
	started               chan struct{} // closed when synced, or at the end
	done                  chan struct{} // closed at the end
	end                   error         // the reason; read it after done
}

// Name is the handler's name in reports of its actor.
func (l *listener) Name() string { return l.options.Name }

// Started arms the first resync.
func (l *listener) Started(ctx *actors.Context) { l.armResync(ctx) }

// armResync arms the next resync, if there is none. The clock may be the user's and panic:
// then the next delivery brings another try.
func (l *listener) armResync(ctx *actors.Context) {
	if l.options.Resync == 0 || l.resync != nil {
		return
	}
	fired := make(chan struct{})
	panicked := usercode.Call("Clock.AfterFunc", "", func() {
		l.resync = ctx.Clock().AfterFunc(l.options.Resync, func() {
			l.resyncDue.Store(true)
			l.box.Wake()
			close(fired)
		})
		l.resyncFired = fired
	})
	if panicked != nil {
		l.informer.report(fmt.Errorf("handler %s: resync: %w", l.options.Name, panicked))
	}
}

// Woken makes one delivery.
func (l *listener) Woken(ctx *actors.Context) (again bool) {
	draining := l.draining.Load() // before take: nothing is offered after draining is set
	if !draining {
		if l.resyncDue.Swap(false) {
			l.resync = nil
			l.pending.requestResync()
		}
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

// run makes a delivery; after a panic it continues with the next notification.
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

// attempt delivers from i on, until the end, a panic, or the listener is dropped.
// It returns the next index.
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
	if panicked, ok := errors.AsType[*usercode.PanicError](err); ok {
		n := d.at(next - 1)
		panicked.Key, panicked.Revision = n.key(), uint64(n.Object.Revision)
		l.failed(n.String(), panicked)
	}
	return next
}

// failed records a panic.
func (l *listener) failed(notification string, err error) {
	failure := &PanicError{Handler: l.options.Name, Notification: notification, Err: err}
	l.panicked.Store(failure)
	if l.options.OnPanic == EndHandler {
		l.dropped.Store(true)
	}
	l.informer.report(failure)
}

// died records that the handler has ended its goroutine by runtime.Goexit.
func (l *listener) died(reason any) {
	err, ok := reason.(error)
	if !ok {
		err = fmt.Errorf("%v", reason)
	}
	l.dropped.Store(true)
	l.failed("", err)
}

// offer adds a batch to the pending ones. It never blocks.
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

// Stopping stops the resync timer, or waits until it has fired.
func (l *listener) Stopping(*actors.Context) {
	if l.resync != nil && !l.resync.Stop() {
		<-l.resyncFired
	}
}

// Stopped ends the calls that wait for the end.
func (l *listener) Stopped(*actors.Context) { l.finish() }

// finish ends the registration, with [ErrRemoved] if the handler was removed, else
// with [ErrClosed] and why the informer ended by itself.
func (l *listener) finish() {
	l.doneOnce.Do(func() {
		l.running.Store(false)
		why := l.informer.err()
		switch {
		case l.removed.Load():
			l.end = ErrRemoved
		case why == nil:
			l.end = ErrClosed
		case errors.Is(why, ErrClosed):
			l.end = why
		default:
			l.end = fmt.Errorf("%w: %w", ErrClosed, why)
		}
		l.informer.forget(l)
		l.pending.end(func() { close(l.done) })
		l.endStart()
	})
}

// endStart ends the calls of WaitSynced.
func (l *listener) endStart() { l.startedOnce.Do(func() { close(l.started) }) }
