package watcher

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Defaults of [ErrorPolicy]: five attempts within a second and a half.
const (
	DefaultAttempts   = 5
	DefaultBackoff    = 100 * time.Millisecond
	DefaultMaxBackoff = 30 * time.Second
)

// ErrorPolicy says what becomes of an event that its handler has returned an error
// for, or panicked on: the handler is called with it again, after pauses that grow,
// and at last the watch ends, or the event is skipped. Later events wait. The zero
// value makes five attempts and then ends the watch, so that no event is lost.
type ErrorPolicy struct {
	// Attempts is how often the handler is called with one event at most. Zero means
	// [DefaultAttempts]; 1 means that it is never called again.
	Attempts int
	// Backoff is the pause after the first attempt; each pause is twice the one
	// before, up to MaxBackoff. Zero means [DefaultBackoff], and [DefaultMaxBackoff] or
	// Backoff if that is longer. A pause takes no goroutine and no worker.
	Backoff, MaxBackoff time.Duration
	// Skip goes on with the next event after the last attempt, and reports the error
	// to OnError. Otherwise the watch ends with the error, and its revision lies
	// before the event.
	Skip bool
}

// Validate returns a [*usercode.ConfigError] for the first field that is wrong.
func (p ErrorPolicy) Validate() error {
	switch {
	case p.Attempts < 0:
		return &usercode.ConfigError{Field: "ErrorPolicy.Attempts", Problem: fmt.Sprintf("is %d; give the number of calls for one event, or zero for %d", p.Attempts, DefaultAttempts)}
	case p.Backoff < 0:
		return &usercode.ConfigError{Field: "ErrorPolicy.Backoff", Problem: fmt.Sprintf("is negative; zero means %v", DefaultBackoff)}
	case p.MaxBackoff < 0:
		return &usercode.ConfigError{Field: "ErrorPolicy.MaxBackoff", Problem: fmt.Sprintf("is negative; zero means %v", DefaultMaxBackoff)}
	}
	return nil
}

func (p ErrorPolicy) withDefaults() ErrorPolicy {
	if p.Attempts == 0 {
		p.Attempts = DefaultAttempts
	}
	if p.Backoff == 0 {
		p.Backoff = DefaultBackoff
	}
	if p.MaxBackoff == 0 {
		p.MaxBackoff = max(DefaultMaxBackoff, p.Backoff)
	}
	return p
}

// pause returns how long to wait after that many failed attempts, at least one.
func (p ErrorPolicy) pause(failed int) time.Duration {
	d := min(p.Backoff, p.MaxBackoff)
	for ; failed > 1 && d < p.MaxBackoff; failed-- {
		d += min(d, p.MaxBackoff-d) // twice d might overflow
	}
	return d
}

// RetryingHandler is a handler that can fail, and what it needs.
type RetryingHandler struct {
	// Handle is the handler. Its context ends with the watch.
	Handle func(context.Context, store.Event) error
	Policy ErrorPolicy
	// Context is the parent of the handler's context, which has its values.
	Context context.Context
	Clock   clock.Clock
	// OnRetry is called after each attempt that is followed by another one after a
	// pause. It must not block.
	OnRetry func(w *Watch, failed *HandlerError, pause time.Duration)
}

// retrying calls a handler that can fail. Only the actor's turns use it, except the
// fields that the watch's lock guards.
//
//	          ┌────────── nil ─────────┐
//	          ▼                        │
//	event ─▶ call ─ error ─▶ pause ─▶ call … ─ last error ─▶ skip, or the watch's end
type retrying struct {
	RetryingHandler
	watch *Watch
	box   *actors.WakeBox
	ctx   context.Context
	// failed is how many attempts at the first event in hand have failed.
	failed int

	// The watch's lock guards the fields below.
	cancel context.CancelCauseFunc
	timer  clock.Timer // nil unless there is a pause
}

// NewRetrying makes a watch that reads feed and calls a handler that can fail.
func NewRetrying(feed *Feed, options Options, with RetryingHandler) *Watch {
	t := &retrying{RetryingHandler: with}
	t.Policy = t.Policy.withDefaults()
	t.ctx, t.cancel = context.WithCancelCause(with.Context)
	t.watch = NewHandled(feed, options, t.deliver)
	t.box = &t.watch.target.(*handler).box
	t.watch.obtainExtras().retrying = t
	return t.watch
}

// deliver handles the events until one has to be tried again later: that one and those
// after it are left in the batch.
func (t *retrying) deliver(d *Delivery) {
	if t.pausing() {
		return
	}
	for i, ev := range d.Events() {
		if !d.Begin(i) {
			return
		}
		err := t.try(ev)
		if err == nil {
			t.failed = 0
			continue
		}
		if t.ctx.Err() != nil || !t.goOn(ev, err) {
			d.of.begun-- // it is not handled
			return
		}
	}
}

// try calls the handler. Its panic is an error.
func (t *retrying) try(ev store.Event) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Revision: ev.Revision, Key: ev.Key(), Value: value, Stack: debug.Stack()}
		}
	}()
	return t.Handle(t.ctx, ev)
}

// goOn does what the policy says after an error: it has the event tried again after a
// pause, ends the watch, or reports the error and skips the event. Only then it returns
// true, to go on with the next one.
func (t *retrying) goOn(ev store.Event, err error) bool {
	t.failed++
	failure := &HandlerError{Revision: ev.Revision, Key: ev.Key(), Attempts: t.failed, Err: err}
	if t.failed < t.Policy.Attempts {
		pause := t.Policy.pause(t.failed)
		if t.OnRetry != nil {
			t.OnRetry(t.watch, failure, pause)
		}
		t.wait(pause)
		return false
	}
	t.failed = 0
	if !t.Policy.Skip {
		t.watch.end(failure)
		return false
	}
	if t.watch.feed.Report != nil {
		t.watch.feed.Report(fmt.Errorf("%s: event skipped: %w", t.watch.name, failure))
	}
	return true
}

// wait has the actor woken after a pause or, if the clock fails, which is the user's, at once.
func (t *retrying) wait(pause time.Duration) {
	failed := t.arm(pause)
	if failed == nil {
		return
	}
	t.box.Wake()
	if t.watch.feed.Report != nil {
		t.watch.feed.Report(fmt.Errorf("%s: no pause before the next attempt: %w", t.watch.name, failed))
	}
}

// arm sets the timer of a pause, unless the watch has ended. A panic of the clock is the error.
func (t *retrying) arm(pause time.Duration) error {
	t.watch.mu.Lock()
	defer t.watch.mu.Unlock()
	if t.watch.flags.has(ended) {
		return nil
	}
	return usercode.Call("Clock.AfterFunc", "", func() { t.timer = t.Clock.AfterFunc(pause, t.resume) })
}

// resume ends a pause.
func (t *retrying) resume() {
	t.watch.mu.Lock()
	t.timer = nil
	t.watch.mu.Unlock()
	t.box.Wake()
}

// pausing reports whether there is a pause.
func (t *retrying) pausing() bool {
	t.watch.mu.Lock()
	defer t.watch.mu.Unlock()
	return t.timer != nil
}

// stop ends the handler's context. A timer that panics stays: it wakes an actor that has
// ended. The caller holds the watch's lock.
func (t *retrying) stop(reason error) {
	t.cancel(reason)
	_ = usercode.Call("Timer.Stop", "", func() { clock.Stop(&t.timer) })
}
