package faulty

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// ErrInjected is the error of failing calls without another error.
var ErrInjected = errors.New("failed by a rule of the test")

// Fail makes calls fail with err, or with [ErrInjected] if that is nil. A next
// that fails ends its watch.
func Fail(err error) Action {
	if err == nil {
		err = ErrInjected
	}
	return func(_ context.Context, c *Call, _ func()) { c.Err = err }
}

// Expire makes calls fail with a [*store.ExpiredError], as if the history that
// they need had been compacted: a list and a watch from a revision, the pages of a list
// after its first (as a [*backend.ExpiredContinueError]), and a next. Other calls pass and do
// not count as hits.
func Expire() Action {
	return func(_ context.Context, c *Call, proceed func()) {
		if c.Err = expired(c); c.Err == nil {
			c.Spare()
			proceed()
		}
	}
}

// expired returns the error of a call whose history was compacted; nil if it needs none.
func expired(c *Call) error {
	var at store.Revision
	switch c.Op {
	case OpList:
		scan, err := c.ListOptions.Scan()
		if err != nil {
			return nil // the backend refuses it
		}
		return scan.Check(scan.Revision+1, scan.Revision)
	case OpWatch:
		at = c.WatchOptions.From
	case OpNext:
		at = c.Position
	}
	if at == 0 {
		return nil
	}
	return &store.ExpiredError{Requested: at, Oldest: at + 1}
}

// LoseAnswer lets calls take effect and then fail with err, or with [ErrInjected]
// if that is nil, as when a connection breaks before the response. A put or an
// emit stores a copy, since its draft stays the caller's.
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

// Delay delays calls, by the backend's clock. One whose context is done meanwhile
// fails with the context's cause. A next must not block, and nothing prevents a stop: they
// are not delayed and do not count as hits.
func Delay(d time.Duration) Action {
	return func(ctx context.Context, c *Call, proceed func()) {
		if c.Op == OpNext || c.Op == OpStop {
			c.Spare()
			proceed()
			return
		}
		if d <= 0 {
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

// Hang blocks calls until the rule is removed. One whose context is done meanwhile
// fails with the context's cause. A next must not block: instead its watch returns
// nothing until the rule is removed; then the reader is notified. Nothing prevents a stop,
// which does not count as a hit.
func Hang() Action {
	return func(ctx context.Context, c *Call, proceed func()) {
		switch {
		case c.Op == OpNext && c.watch.hang(c.fault):
			c.Batch = backend.Batch{After: c.Position, Through: c.Position}
		case c.Op == OpNext || c.Op == OpStop:
			c.Spare()
			proceed()
		default:
			if c.Err = wait(ctx, c.fault.over); c.Err == nil {
				proceed()
			}
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

// LoseEvent drops an event from batches: the one in the middle. The batch's After
// and Through stay, so the reader can detect it only by the revisions. A next
// without events does not count as a hit.
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

// RepeatEvent duplicates an event in batches: the one in the middle. A next
// without events does not count as a hit; [Backend.RepeatLast] does not need new
// events.
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

// Before calls f with each call before it proceeds. f may change the arguments.
func Before(f func(ctx context.Context, c *Call)) Action {
	return func(ctx context.Context, c *Call, proceed func()) {
		f(ctx, c)
		proceed()
	}
}

// After calls f with each call when it has returned. f may change the results.
func After(f func(ctx context.Context, c *Call)) Action {
	return func(ctx context.Context, c *Call, proceed func()) {
		proceed()
		f(ctx, c)
	}
}
