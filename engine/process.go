package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Process is [Engine.Handle] for a handler that can fail. After an error it is called
// with the same event again, after a pause; if it keeps failing, policy says whether the
// watch ends with the error or continues without the event. A panic counts as an error.
// Meanwhile the watch's later events wait; other watches do not.
//
// The handler's context has the values of ctx and, unless the watch is Detached, its
// deadline. It ends when the watch does, or as soon as Close is called, with the reason as
// its cause. If the handler returns an error after that, the watch does not end with it,
// and the event does not count as handled: [Watch.Revision] stays before it.
//
// Errors: [ErrNilHandler], a [*ConfigError] for policy, and as for Handle.
func (e *Engine[T]) Process(ctx context.Context, opts WatchOptions, policy ErrorPolicy, handle func(context.Context, Event[T]) error) (*Watch[T], error) {
	if handle == nil {
		return nil, ErrNilHandler
	}
	return typedWatch[T](e.core.process(ctx, opts.madeByCaller(), policy, func(ctx context.Context, ev store.Event) error {
		return handle(ctx, typedEvent[T](ev))
	}))
}

// Process is [Topic.SubscribeWith] for a handler that can fail; see [Engine.Process].
func (t *Topic[T]) Process(ctx context.Context, opts SubscribeOptions, policy ErrorPolicy, handle func(context.Context, T) error) (*Subscription, error) {
	if handle == nil {
		return nil, ErrNilHandler
	}
	return t.core.process(ctx, opts.madeByCaller(), policy, func(ctx context.Context, ev store.Event) error {
		return handle(ctx, typed[T](ev.Object).Value)
	})
}

func (e *core) process(ctx context.Context, opts WatchOptions, policy ErrorPolicy, handle func(context.Context, store.Event) error) (watchCore, error) {
	if err := policy.Validate(); err != nil {
		return nil, configError(err)
	}
	return e.watch(ctx, &opts, consumer{retrying: &watcher.RetryingHandler{
		Handle: handle, Policy: policy, Context: handlerContext{e.serving, ctx, opts.Detached},
		Clock: e.host.system.Clock(), OnRetry: e.handlerFailed,
	}})
}

func (t *topic) process(ctx context.Context, opts SubscribeOptions, policy ErrorPolicy, handle func(context.Context, store.Event) error) (*Subscription, error) {
	watch, err := t.watchOptions(opts)
	if err != nil {
		return nil, err
	}
	w, err := t.engine.process(ctx, watch, policy, handle)
	if err != nil {
		return nil, ofTopic(err)
	}
	return &Subscription{w}, nil
}

// handlerFailed logs a handler's error, after which its event is tried again.
func (e *core) handlerFailed(w *watcher.Watch, failed *HandlerError, pause time.Duration) {
	e.log(slog.LevelInfo, "handler failed and will be called again", "watch", w.Name(),
		"key", failed.Key, "revision", failed.Revision, "attempts", failed.Attempts, "pause", pause, "error", failed.Err)
}

// handlerContext is a context that ends with an engine and has the values, and the
// deadline, of another one.
type handlerContext struct {
	context.Context // the engine's
	asked           context.Context
	// detached: asked bounds only the start of the watch.
	detached bool
}

// Deadline is that of the call that started the watch, if the watch ends then.
func (c handlerContext) Deadline() (time.Time, bool) {
	if c.detached {
		return time.Time{}, false
	}
	return c.asked.Deadline()
}

// Value looks in the engine's context first, whose only value is the one by which package
// context finds its cancellation.
func (c handlerContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.asked.Value(key)
}

// String is for contexts that are printed.
func (c handlerContext) String() string { return fmt.Sprintf("handler of %v", c.asked) }
