package faulty

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// ErrInjected is what calls fail with that are told no other error.
var ErrInjected = errors.New("failed by a rule of the test")

// Fail makes calls fail with err, or with [ErrInjected] if that is nil. A next
// that fails ends its watch.
func Fail(err error) Action {
	if err == nil {
		err = ErrInjected
	}
	return func(_ context.Context, c *Call, _ func()) { c.Err = err }
}

// Expire makes calls fail as if the history that they need had been compacted: a
// list and a watch from a revision, and a next, with a [*store.ExpiredError].
// Other calls go on and do not count as struck.
func Expire() Action {
	return func(_ context.Context, c *Call, proceed func()) {
		var at store.Revision
		switch c.Op {
		case OpList:
			at = c.ListOptions.Revision
		case OpWatch:
			at = c.WatchOptions.From
		case OpNext:
			at = c.Position
		}
		if at == 0 {
			c.Spare()
			proceed()
			return
		}
		c.Err = &store.ExpiredError{Requested: at, Oldest: at + 1}
	}
}

// LoseAnswer lets calls take effect and then fail with err, or with [ErrInjected]
// if that is nil, as when a connection breaks before the answer has come. What a
// put or an emit stores is a copy, since its draft stays the caller's.
func LoseAnswer(schema store.Schema, err error) Action {
	if err == nil {
		err = ErrInjected
	}
	return func(_ context.Context, c *Call, proceed func()) {
		if c.Draft != nil {
			c.Draft = schema.Clone(c.Draft)
		}
		if proceed(); c.Err == nil {
			c.Err = err
		}
	}
}

// Delay makes calls wait before they go on, by the backend's clock. One whose
// context is done meanwhile fails with the context's cause. A next must not wait,
// so it goes on at once and does not count as struck.
func Delay(d time.Duration) Action {
	return func(ctx context.Context, c *Call, proceed func()) {
		if c.Op == OpNext {
			c.Spare()
			proceed()
			return
		}
		passed := make(chan struct{})
		timer := c.backend.opts.Clock.AfterFunc(d, func() { close(passed) })
		defer timer.Stop()
		if c.Err = wait(ctx, passed); c.Err == nil {
			proceed()
		}
	}
}

// Hang makes calls wait until the rule is removed. One whose context is done
// meanwhile fails with the context's cause. A next must not wait: its watch returns
// nothing from then on, as long as the rule holds. When the rule is removed the
// reader is notified.
func Hang() Action {
	return func(ctx context.Context, c *Call, proceed func()) {
		if c.Op == OpNext {
			if c.watch.hang(c.fault) {
				c.Batch = backend.Batch{After: c.Position, Through: c.Position}
				return
			}
			c.Spare()
			proceed()
			return
		}
		if c.Err = wait(ctx, c.fault.over); c.Err == nil {
			proceed()
		}
	}
}

func wait(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// LoseEvent makes batches lack an event: the one in the middle. The batch says the
// same of itself as the whole one, so the reader has to notice by its revisions.
// A next that brings no event does not count as struck.
func LoseEvent() Action {
	return func(_ context.Context, c *Call, proceed func()) {
		proceed()
		if n := len(c.Batch.Events); n > 0 {
			c.Batch.Events = slices.Delete(slices.Clone(c.Batch.Events), n/2, n/2+1)
			return
		}
		c.Spare()
	}
}

// RepeatEvent makes batches have an event twice: the one in the middle. A next
// that brings no event does not count as struck; [Backend.RepeatLast] does not
// wait for one.
func RepeatEvent() Action {
	return func(_ context.Context, c *Call, proceed func()) {
		proceed()
		if n := len(c.Batch.Events); n > 0 {
			c.Batch.Events = slices.Insert(slices.Clone(c.Batch.Events), n/2, c.Batch.Events[n/2])
			return
		}
		c.Spare()
	}
}

// Before calls f with each call before it goes on, After when it has come back.
// Both may change it.
func Before(f func(ctx context.Context, c *Call)) Action {
	return func(ctx context.Context, c *Call, proceed func()) {
		f(ctx, c)
		proceed()
	}
}

// After is explained at [Before].
func After(f func(ctx context.Context, c *Call)) Action {
	return func(ctx context.Context, c *Call, proceed func()) {
		proceed()
		f(ctx, c)
	}
}
