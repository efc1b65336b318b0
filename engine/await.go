package engine

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/watchmill/watchmill/clock"
)

// await blocks until ready is signalled or closed, or ctx is done. In a
// deterministic run it runs the engine meanwhile.
func (h *host) await(ctx context.Context, ready <-chan struct{}) error {
	_, err := receive(ctx, h, ready)
	return err
}

// reply waits for the answer to a message that was sent to an actor.
func (h *host) reply(ctx context.Context, answer <-chan error) error {
	err, failed := receive(ctx, h, answer)
	if failed != nil {
		return failed
	}
	return err
}

// patience is how long beyond its own limit a call waits for the actor's answer,
// which normally reports that the limit has passed.
const patience = time.Second

// replyWithin is reply for an actor that answers within the limit, if it has a worker of the
// pool: a wait has a timer only while user code holds one. If the answer does not come for
// that reason, the call fails with [ErrNotReady].
func (h *host) replyWithin(ctx context.Context, limit time.Duration, answer <-chan error) error {
	if h.run != nil {
		return h.reply(ctx, answer)
	}
	select {
	case err := <-answer: // the actor was idle: see [actors.Ref.Ask]
		return err
	default:
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.system.Held():
		return h.replyBefore(ctx, min(limit, math.MaxInt64-patience)+patience, answer)
	}
}

// replyBefore is reply for at most so long.
func (h *host) replyBefore(ctx context.Context, limit time.Duration, answer <-chan error) error {
	passed, timer := h.after(limit)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-passed:
		return &NotReadyError{RetryAfter: patience, Cause: errWorkersHeld}
	}
}

var errWorkersHeld = errors.New("the host's workers have not answered: does a handler with OnPool block, or is the machine overloaded?")

// after returns a channel that is closed when d has passed, and the timer for that.
func (h *host) after(d time.Duration) (passed <-chan struct{}, timer clock.Timer) {
	closed := make(chan struct{})
	return closed, h.system.Clock().AfterFunc(d, func() { close(closed) })
}

// receive is <-from that honours ctx and drives a deterministic run. A value that is there is
// received even if ctx is done.
func receive[V any](ctx context.Context, h *host, from <-chan V) (v V, err error) {
	if h.run != nil {
		return receiveRunning(ctx, h.run, from)
	}
	select {
	case v = <-from:
		return v, nil
	default:
	}
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}

// receiveRunning runs turns until something is received, as receive does.
func receiveRunning[V any](ctx context.Context, run func() int, from <-chan V) (v V, err error) {
	for {
		ran := run()
		select {
		case v = <-from:
			return v, nil
		default:
		}
		switch {
		case ctx.Err() != nil:
			return v, context.Cause(ctx)
		case ran == 0:
			return v, ErrIdle
		}
	}
}

// wait waits for d, if that is not zero, by the clock of e's host.
func wait(ctx context.Context, e engineCore, d time.Duration) error {
	if d == 0 {
		return nil
	}
	h := coreOf(e.hostOf())
	passed, timer := h.after(d)
	defer timer.Stop()
	return h.await(ctx, passed)
}

// The pauses between attempts.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// pauseAfter returns the pause after that many failures in a row. The first has none.
func pauseAfter(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(firstPause<<min(failures-2, 10), longestPause)
}
