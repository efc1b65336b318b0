package engine

import (
	"cmp"
	"context"
	"fmt"
	"github.com/watchmill/watchmill/actors/watcher"

	"github.com/watchmill/watchmill/store"
)

// SubscribeOptions says where a subscription starts and how it behaves. The
// zero value starts now.
type SubscribeOptions struct {
	// Last starts with so many of the newest messages, as far as they are still
	// there; see [TopicOptions].Replay.
	Last int
	// From starts after a revision, one that Publish or
	// [Subscription.Revision] gave: to resume. Not beside Last.
	From Revision
	// Policy says what happens to a subscriber that stays too far behind: [Park]
	// or [Terminate]. Park, which is zero, means the topic's.
	Policy Policy
	// Buffer is how many messages the subscriber may lag before it is called
	// stalled; zero means the topic's.
	Buffer int
	// OnPool runs the handler on the topic's own workers, which saves a
	// goroutine switch per burst. It must never block then, nor publish without
	// end: Publish may have to wait for these workers.
	OnPool bool
}

// Subscription is the handle of a running handler. Its methods are safe for
// concurrent use and do not block.
type Subscription struct{ watch watchCore }

// Stop ends the subscription with [ErrStopped]. It does not wait for the handler,
// which is not called again once it has returned: so it may be called in there.
func (s *Subscription) Stop() { s.watch.Stop() }

// Done returns a channel that is closed when the subscription ends.
func (s *Subscription) Done() <-chan struct{} { return s.watch.Done() }

// Err returns why the subscription ended, nil while it has not: [ErrStopped]
// (with the context's cause, if it was that), [ErrHandlerPanic], [ErrExpired]
// if the handler fell out of the window, [ErrSlowConsumer] or
// [ErrEngineClosed].
func (s *Subscription) Err() error { return s.watch.Err() }

// Revision returns where a new subscription would go on: everything up to it
// has been handled.
func (s *Subscription) Revision() Revision { return s.watch.Revision() }

// Lag returns how many messages are still ahead of the handler.
func (s *Subscription) Lag() uint64 { return s.watch.Lag() }

// Subscribe has handle called with every message from now on, one at a time, in
// order. The handler may block: then only its
// own subscription lags. It may publish, to this topic too. If it panics, that
// ends its own subscription alone, with a [*PanicError]. The subscription ends
// when ctx is done.
//
// Errors: [ErrNilHandler],
// [ErrInvalidWatch], [ErrExpired] if From is no longer there,
// [ErrEngineClosed], why NewTopic failed, ctx's cause.
func (t *Topic[T]) Subscribe(ctx context.Context, handle func(T)) (*Subscription, error) {
	return t.SubscribeWith(ctx, SubscribeOptions{}, handle)
}

// SubscribeWith is Subscribe from where the options say, and as they say.
func (t *Topic[T]) SubscribeWith(ctx context.Context, opts SubscribeOptions, handle func(T)) (*Subscription, error) {
	if handle == nil {
		return t.core.subscribe(ctx, nil, opts)
	}
	return t.core.subscribe(ctx, func(message *store.Object) { handle(typed[T](message).Value) }, opts)
}

func (t *topic) subscribe(ctx context.Context, handle func(*store.Object), opts SubscribeOptions) (*Subscription, error) {
	watch, err := t.watchOptions(opts)
	if err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, ErrNilHandler
	}
	w, err := t.engine.watch(ctx, watch, watcher.Each(func(ev store.Event) { handle(ev.Object) }))
	if err != nil {
		return nil, err
	}
	return &Subscription{w}, nil
}

// Watch subscribes and returns the watch itself, to be pulled: its events are
// all [Emitted] and have the messages' revisions. Errors as for Subscribe.
func (t *Topic[T]) Watch(ctx context.Context, opts SubscribeOptions) (*Watch[T], error) {
	return typedWatch[T](t.core.startWatch(ctx, opts))
}

func (t *topic) startWatch(ctx context.Context, opts SubscribeOptions) (watchCore, error) {
	watch, err := t.watchOptions(opts)
	if err != nil {
		return nil, err
	}
	return t.engine.startWatch(ctx, watch, nil)
}

// watchOptions says what the subscription is as a watch.
func (t *topic) watchOptions(opts SubscribeOptions) (WatchOptions, error) {
	if t.misuse != nil {
		return WatchOptions{}, t.misuse
	}
	if problem := policyProblem(opts.Policy); problem != "" {
		return WatchOptions{}, fmt.Errorf("%w: Policy %s", ErrInvalidWatch, problem)
	}
	return WatchOptions{
		Last: opts.Last, From: opts.From, OnPool: opts.OnPool,
		Policy: cmp.Or(opts.Policy, t.policy), Buffer: cmp.Or(opts.Buffer, t.buffer),
	}, nil
}
