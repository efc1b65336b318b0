package world

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
)

// Retries is the invariant that a function which fails is called again with the same event,
// after the pause of its policy, and not more often than that says.
const Retries judge.Invariant = "retries"

// errProcess is the error with which the function of a Processor fails.
var errProcess = errors.New("the scenario says so")

// processing is what happened to the event that the function of a Processor was last called with.
//
//	call ─ error ─▶ failed 1 ─ pause ─▶ call ─ error ─▶ failed 2 ─ pause ─▶ call ─ error ─▶ the watch's end, or
//	  └─ nil ─▶ delivered                └─ nil ─▶ delivered                                 skipped
type processing struct {
	// fails is how many of the next calls fail.
	fails int
	// event is the one for which the function has failed so often, and next the time before which it
	// must not be called again.
	event  string
	failed int
	next   time.Time
}

// pending reports whether the function must be called again.
func (p *processing) pending() bool { return p.failed > 0 }

// policyOf returns the policy of a Processor.
func (w *World[T]) policyOf(r *watch[T]) engine.ErrorPolicy {
	policy := engine.ErrorPolicy{Attempts: script.Attempts, Backoff: script.Backoff, Skip: r.skips}
	if w.seams.policy != nil {
		policy = w.seams.policy(policy)
	}
	return policy
}

// process is the function of every Processor.
func (w *World[T]) process(ctx context.Context, r *watch[T], ev engine.Event[T]) error {
	w.judgeCall(r, ev)
	err := w.tryProcessing(ctx, r, ev)
	if w.seams.processed != nil {
		err = w.seams.processed(err)
	}
	return err
}

// tryProcessing delivers the event, unless the scenario says that the function fails or panics.
func (w *World[T]) tryProcessing(ctx context.Context, r *watch[T], ev engine.Event[T]) error {
	p := &r.processing
	if !r.panics && p.fails == 0 {
		p.failed = 0
		w.deliver(r, ev)
		return nil
	}
	w.failProcessing(ctx, r, ev)
	if r.panics {
		r.panics = false
		panic(errProcess)
	}
	p.fails--
	return errProcess
}

// judgeCall fails the world if the function of a Processor must not be called with ev now.
func (w *World[T]) judgeCall(r *watch[T], ev engine.Event[T]) {
	p := &r.processing
	switch early := p.next.Sub(w.clock.Now()); {
	case !p.pending():
	case p.failed == script.Attempts:
		w.fail(judge.Failed(Retries, r.Name, "it is called after its last attempt"))
	case ev.String() != p.event:
		w.fail(judge.Failed(Retries, r.Name, "it has failed for %s and is called with %v", p.event, ev))
	case early > 0 && !w.storage.ClockJumped:
		w.fail(judge.Failed(Retries, r.Name, "it is called with %v again %v early", ev, early))
	}
}

// failProcessing records that the function fails. After the last attempt its watch must end or, if
// it skips the event, go on as if it were delivered. An event is not handled if its context is done: the
// engine is being closed, or the watch has ended.
func (w *World[T]) failProcessing(ctx context.Context, r *watch[T], ev engine.Event[T]) {
	p := &r.processing
	p.failed++
	p.event, p.next = ev.String(), w.clock.Now().Add(script.Backoff<<(p.failed-1))
	switch {
	case p.failed < script.Attempts, ctx.Err() != nil:
	case r.skips:
		p.failed = 0
		w.skipped++
		w.deliver(r, ev)
	default:
		r.Causes = append(r.Causes, errProcess)
	}
}

// endFailures lets every Processor succeed from now on.
func (w *World[T]) endFailures() {
	for _, r := range w.started {
		if r.consumer == script.Processor {
			r.processing.fails, r.panics = 0, false
		}
	}
}

// endRetries ends the failures, and lets the pauses after them pass.
func (w *World[T]) endRetries() {
	w.endFailures()
	if slices.ContainsFunc(w.started, func(r *watch[T]) bool { return r.processing.pending() }) {
		w.clock.Advance(script.Backoff << script.Attempts)
	}
}
