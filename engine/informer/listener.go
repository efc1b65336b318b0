package informer

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store/backend"
)

// listener is a handler's actor. It runs where it may block, and has a goroutine
// only while there is something to tell.
type listener[T any] struct {
	box     actors.WakeBox
	shared  *SharedInformer[T]
	options HandlerOptions
	handle  func(Notification[T])
	backlog backlog[T]

	// dropped: it is to be told nothing more. draining: what it has is all that
	// it will be told.
	dropped, draining atomic.Bool
	// removed: somebody asked for its end.
	removed atomic.Bool
	// running: the handler is being told something.
	running atomic.Bool
	// synced: it has handled the state that it started with.
	synced atomic.Bool
	// panicked is its last panic.
	panicked atomic.Pointer[HandlerError]

	resync actors.Timer
	// rung is closed when resync has fired.
	rung      chan struct{}
	resyncDue atomic.Bool

	settling, finishing sync.Once
	settled             chan struct{} // closed when synced, or at the end
	done                chan struct{} // closed at the end
	end                 error         // why it ended; read it after done
}

// Started arms the first resync.
func (l *listener[T]) Started(ctx *actors.Context) { l.armResync(ctx) }

func (l *listener[T]) armResync(ctx *actors.Context) {
	if l.options.Resync > 0 {
		rung := make(chan struct{})
		l.rung = rung
		l.resync = ctx.Clock().AfterFunc(l.options.Resync, func() {
			l.resyncDue.Store(true)
			l.box.Wake()
			close(rung)
		})
	}
}

// Woken does one job.
func (l *listener[T]) Woken(ctx *actors.Context) (again bool) {
	draining := l.draining.Load() // before looking: nothing comes after that
	if l.resyncDue.Swap(false) && !draining {
		l.backlog.requestResync()
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

func (l *listener[T]) take() (job[T], bool) {
	if l.dropped.Load() {
		return job[T]{}, false
	}
	return l.backlog.take()
}

// run does a job, panic by panic.
func (l *listener[T]) run(next job[T]) {
	l.running.Store(true)
	callback(func() {
		for i := 0; i < next.n && !l.dropped.Load(); {
			i = l.attempt(next, i)
		}
	})
	l.running.Store(false)
	l.backlog.left.Store(0)
	if next.start && !l.dropped.Load() {
		l.synced.Store(true)
		l.settle()
	}
	if l.backlog.released() {
		l.shared.actor.Tell(look[T]{})
	}
}

// attempt does a job from i on, until the end, a panic, or the listener is
// dropped. It returns where to go on.
func (l *listener[T]) attempt(j job[T], i int) (next int) {
	defer func() {
		if reason := recover(); reason != nil {
			cause, _ := reason.(error)
			l.failed(j.at(next-1).String(), &backend.PanicError{
				Func: "EventHandler", Key: j.at(next - 1).Key(),
				Reason: fmt.Sprint(reason), Cause: cause, Stack: debug.Stack(),
			})
		}
	}()
	for next = i; next < j.n && !l.dropped.Load(); {
		n := j.at(next)
		next++
		l.handle(n)
		l.backlog.left.Store(int64(j.n - next))
	}
	return next
}

// failed notes a panic.
func (l *listener[T]) failed(told string, err error) {
	failure := &HandlerError{Handler: l.options.Name, Notification: told, Err: err}
	l.panicked.Store(failure)
	if l.options.OnPanic == EndHandler {
		l.dropped.Store(true)
	}
	l.shared.report(failure)
}

// died notes that the handler has ended its goroutine.
func (l *listener[T]) died(reason any) {
	err, ok := reason.(error)
	if !ok {
		err = fmt.Errorf("%v", reason)
	}
	l.dropped.Store(true)
	l.failed("", err)
}

// offer passes a batch on. It never waits.
func (l *listener[T]) offer(b *batch[T]) {
	if lag, slow := l.backlog.offer(b); slow {
		l.shared.report(&SlowHandlerError{Handler: l.options.Name, Policy: l.options.Policy, Lag: lag})
	}
	l.box.Wake()
}

// leave lets the handler end when it has been told what it has.
func (l *listener[T]) leave() {
	l.draining.Store(true)
	l.box.Wake()
}

// Stopping disarms the resync, or hears it out, so that nothing of it is left.
func (l *listener[T]) Stopping(*actors.Context) {
	if l.resync != nil && !l.resync.Stop() {
		<-l.rung
	}
}

// Stopped tells who waits for the end.
func (l *listener[T]) Stopped(*actors.Context) { l.finish(ErrClosed) }

// finish ends the handle, for a reason if it has no better one.
func (l *listener[T]) finish(reason error) {
	l.finishing.Do(func() {
		l.running.Store(false)
		l.end = reason
		if l.removed.Load() {
			l.end = ErrRemoved
		}
		l.shared.forget(l)
		close(l.done)
		l.settle()
	})
}

func (l *listener[T]) settle() { l.settling.Do(func() { close(l.settled) }) }
