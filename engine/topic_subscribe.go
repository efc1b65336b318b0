package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/usercode"
)

// SubscribeOptions configures a subscription. The zero value starts now.
type SubscribeOptions struct {
	// Last starts with that many of the newest messages, as far as they are still
	// kept; see [TopicOptions].Replay. Messages that were published so recently that the
	// topic's window does not have them yet come in addition, as later ones do.
	Last int
	// From resumes after a revision of Publish or [Subscription.Revision]. It
	// excludes Last. If messages after it are no longer kept, as after a restart of the
	// process, that is an [ErrExpired]. A topic has no state to list: subscribe with Last, or
	// from now on. If it is in the future, messages up to it are left out: one that clients
	// send should not be greater than [Stats].Revision.
	From Revision
	// Policy says what happens to a subscriber that stays too far behind: [Park]
	// or [Terminate]. Park, which is zero, means the topic's.
	Policy Policy
	// Buffer is how many messages the subscriber may lag before it is stalled; zero
	// means the topic's.
	Buffer int
	// OnPool runs the handler on the topic's own workers, which saves a goroutine
	// switch per burst. The handler must then never block, nor publish without end,
	// since Publish may wait for these workers.
	OnPool bool
	// Name is what the subscription is called in errors, logs and [Topic.Watches];
	// empty means the file and line of the call that starts it.
	Name string

	// made is where the subscription was asked for.
	made usercode.Place
}

// madeByCaller returns the options with the place at which its caller, a function of the
// façade, was called.
func (o SubscribeOptions) madeByCaller() SubscribeOptions {
	if o.Name == "" && o.made == 0 {
		o.made = usercode.Caller(2)
	}
	return o
}

// Subscription is the handle of a running handler. Its methods are safe for
// concurrent use and, except Wait, do not block.
type Subscription struct{ watch watchCore }

// Stop ends the subscription with [ErrStopped]. It does not wait for the handler,
// which is not called again once it has returned: so it may be called in there.
func (s *Subscription) Stop() { s.watch.Stop() }

// Wait blocks until the subscription has ended, and its handler has returned from its
// last call. If ctx is done first, it returns ctx's cause. See [Watch.Wait].
func (s *Subscription) Wait(ctx context.Context) error { return s.watch.Wait(ctx) }

// Done returns a channel that is closed when the subscription ends.
func (s *Subscription) Done() <-chan struct{} { return s.watch.Done() }

// Err returns why the subscription ended, nil while it has not: [ErrStopped]
// (with the context's cause, if it was that), [ErrHandlerPanic], [ErrExpired]
// if the handler fell out of the window, [ErrSlowConsumer], [ErrHandler] if the
// handler of [Topic.Process] has failed too often, or [ErrEngineClosed].
func (s *Subscription) Err() error { return s.watch.Err() }

// Revision returns the revision from which a new subscription continues: everything
// up to it has been handled.
func (s *Subscription) Revision() Revision { return s.watch.Revision() }

// Name returns what the subscription is called in errors and logs.
func (s *Subscription) Name() string { return s.watch.Name() }

// Lag returns how many messages the handler has not handled; see [Watch.Lag].
func (s *Subscription) Lag() uint64 { return s.watch.Lag() }

// Behind returns how long ago the oldest message was published that the handler has
// not handled, zero if there is none.
func (s *Subscription) Behind() time.Duration { return s.watch.Behind() }

// Subscribe calls handle with every message from now on, one at a time, in order. The
// handler may block: then only its own subscription lags. It may publish, even to this
// topic. If it panics, its subscription ends with a [*PanicError]. The subscription
// ends when ctx is done.
//
// Errors: [ErrNilHandler], [ErrInvalidWatch], [ErrExpired] if From is no longer there,
// [ErrEngineClosed], why NewTopic failed, ctx's cause. After an error handle has not been called, and
// will not be; see [Engine.Handle].
func (t *Topic[T]) Subscribe(ctx context.Context, handle func(T)) (*Subscription, error) {
	return t.SubscribeWith(ctx, SubscribeOptions{}.madeByCaller(), handle)
}

// SubscribeWith is Subscribe with options. Errors as for Subscribe.
func (t *Topic[T]) SubscribeWith(ctx context.Context, opts SubscribeOptions, handle func(T)) (*Subscription, error) {
	opts = opts.madeByCaller()
	if handle == nil {
		return t.core.subscribe(ctx, nil, opts)
	}
	return t.core.subscribe(ctx, eachMessage(handle), opts)
}

// eachMessage returns a handler that calls handle with each message. It is not inlined for
// the same reason as eachEvent.
//
//go:noinline
func eachMessage[T any](handle func(T)) func(*watcher.Delivery) {
	return func(d *watcher.Delivery) {
		for i, ev := range d.Events() {
			if !begin(d, i) {
				return
			}
			handle(typed[T](ev.Object).Value)
		}
	}
}

func (t *topic) subscribe(ctx context.Context, handle func(*watcher.Delivery), opts SubscribeOptions) (*Subscription, error) {
	watch, err := t.watchOptions(opts)
	if err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, ErrNilHandler
	}
	w, err := t.engine.startWatch(ctx, watch, handle)
	if err != nil {
		return nil, ofTopic(err)
	}
	return &Subscription{w}, nil
}

// Watch subscribes and returns the watch: its events are all [Emitted] and have the
// messages' revisions. Errors as for Subscribe.
func (t *Topic[T]) Watch(ctx context.Context, opts SubscribeOptions) (*Watch[T], error) {
	return typedWatch[T](t.core.startWatch(ctx, opts.madeByCaller()))
}

func (t *topic) startWatch(ctx context.Context, opts SubscribeOptions) (watchCore, error) {
	watch, err := t.watchOptions(opts)
	if err != nil {
		return nil, err
	}
	w, err := t.engine.startWatch(ctx, watch, nil)
	return w, ofTopic(err)
}

// ofTopic returns the error of a call of the engine, or the reason for which a watch ends, for users of a
// topic, which they cannot list.
func ofTopic(err error) error {
	if expired := (*ExpiredError)(nil); errors.As(err, &expired) {
		return &expiredMessagesError{expired}
	}
	return err
}

// expiredMessagesError is the [ExpiredError] of a topic.
type expiredMessagesError struct{ expired *ExpiredError }

func (e *expiredMessagesError) Error() string {
	return fmt.Sprintf("messages after revision %d are not all kept any more, only those after %d: subscribe with Last, or from now on", e.expired.Requested, e.expired.Oldest)
}

// Unwrap returns the error that callers match.
func (e *expiredMessagesError) Unwrap() error { return e.expired }

// watchOptions returns the subscription's options as a watch.
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
		Name: opts.Name, made: opts.made,
	}, nil
}
