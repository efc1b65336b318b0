package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// ErrInvalidWatch: watch options are wrong or contradict each other.
var ErrInvalidWatch = errors.New("invalid watch options")

// WatchOptions says what to watch and from where. The zero value watches all changes
// from now on.
type WatchOptions struct {
	// Key watches one object. Prefix watches the keys under a path; not both.
	Key, Prefix string
	// Labels and Fields are selectors in the field's syntax, such as
	// "app=web,tier!=cache" and "spec.nodeName=n7".
	Labels, Fields string
	// LabelSelector and FieldSelector are selectors that were parsed before, in
	// place of Labels and Fields or in addition to them. One that selects nothing
	// selects nothing.
	LabelSelector labels.Selector
	FieldSelector fields.Selector

	// From starts after a revision of a write, a list, an event or
	// [Watch.Revision]. If it is in the future, events up to it are left out. Zero
	// starts now, or with InitialState.
	From Revision
	// Timeline, if known, is the timeline of From, such as [List].Timeline: if storage
	// was restored or replaced since, the watch fails with [ErrExpired], even if the
	// present storage has the revision From, too. It needs From.
	Timeline Timeline
	// InitialState starts with the current state as Added events marked [Initial].
	// With From, the state is at least as new as that. Changes that come before the consumer has
	// taken it are delivered after it. Under Policy [Park] or [Terminate] those that leave the window
	// meanwhile are kept up to Buffer; with more the watch ends with [ErrExpired], and the rest of the
	// state is not delivered.
	InitialState bool
	// Linearizable makes the start no older than any write that was acknowledged
	// before the call. It costs a call to the backend. If that shows that storage was restored, to
	// an older revision than the cache has, the watch fails with [ErrNotReady] until the cache has
	// noticed. A watch from now on that starts before the cache has the newest of them, as it does
	// after [Config].FreshnessTimeout, ends with [ErrExpired] if the cache then lists, and so misses
	// the changes after it.
	Linearizable bool
	// Last starts with that many of the newest events in the window.
	Last int

	// Bookmarks requests bookmarks: one at the end of the initial state, marked
	// [InitialEnd], then about one a minute, and a last one between one and two seconds
	// before Timeout, if that is longer.
	Bookmarks bool
	// Progress, which needs Bookmarks, adds one about 100 ms after revisions that have no
	// event for this watch. It is for a consumer that keeps a copy elsewhere and must know how
	// new the copy is. A watch gets at most ten a second, and all watches of an engine 10,000, so that
	// each of many waits longer; once the cache has listed again, all get one at once. Each
	// costs what an event costs, and there are none where events come. With [Config].NoCache
	// they come when the backend tells of such revisions.
	Progress bool
	// Policy says what happens if the watch stays too far behind.
	Policy Policy
	// Buffer is how many events the watch may lag before it is stalled; zero means 1,000.
	// Only events that have left the window cost the watch memory, at most as many as
	// this.
	Buffer int
	// Timeout ends the watch with [ErrDeadline]. Zero means that ctx ends it, with its
	// cause. If ctx has a deadline, the last bookmark comes shortly before that, on a host
	// with the real clock, by which contexts live.
	Timeout time.Duration
	// Detached: ctx bounds only the start of the watch. The watch then lasts until it is
	// stopped, its Timeout has passed or the engine closes. That also saves the memory which
	// a context of its own costs a watch, some 500 bytes.
	Detached bool
	// OnPool runs a handler on the engine's own workers, which saves a goroutine
	// switch per burst. The handler must then never block. A watch without a handler ignores it.
	OnPool bool
	// Name is the name of the watch in errors, logs and [Engine.Watches]; empty means the
	// file and line of the call that starts it.
	Name string

	// made is the place of the call that starts the watch.
	made usercode.Place
}

// madeByCaller returns the options with the place at which its caller, a function of the
// façade, was called.
func (o WatchOptions) madeByCaller() WatchOptions {
	if o.Name == "" && o.made == 0 {
		o.made = usercode.Caller(2)
	}
	return o
}

func (o *WatchOptions) validate() error {
	invalid := func(field, problem string) error { return fmt.Errorf("%w: %s %s", ErrInvalidWatch, field, problem) }
	switch {
	case o.Last < 0:
		return invalid("Last", "is negative; give the number of events to start with, or zero")
	case o.Last > 0 && (o.From > 0 || o.InitialState):
		return invalid("Last", "cannot be combined with From or InitialState; choose one start")
	case o.Timeline.known && o.From == 0:
		return invalid("Timeline", "is given without From; give both, as a list has them")
	case o.Progress && !o.Bookmarks:
		return invalid("Progress", "is given without Bookmarks; give both, since bookmarks are how progress is told")
	case o.Buffer < 0:
		return invalid("Buffer", "is negative; give a number of events, or zero for the default")
	case o.Timeout < 0:
		return invalid("Timeout", "is negative; give a duration, or zero for none")
	case !o.Policy.Valid():
		return invalid("Policy", fmt.Sprintf("is %v; give Park, Terminate or Conflate", o.Policy))
	}
	return nil
}

// filter returns what the options select.
func (o *WatchOptions) filter(cfg *settings) (*store.Filter, error) {
	return store.NewFilter(cfg.schema.Fields, store.FilterOptions{
		Key: o.Key, Prefix: o.Prefix, Labels: o.Labels, Fields: o.Fields,
		LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, NoLabels: cfg.noLabels,
	})
}

// Watch starts a watch: range over its Events or Batches, call Next, or use its Chan.
// It ends when ctx is done, unless it is Detached; [Watch.Err] or the last pair of a loop
// has the reason. Watch blocks until the cache can serve it, as long as ctx and
// [Config].FreshnessTimeout allow. It may then register the watch in the calling goroutine,
// which uses the host's Clock, Logger and Metrics, and may notify watches of [Engine.Source]:
// hold no lock that these take.
//
// Errors: [ErrInvalidWatch], [ErrInvalidSelector], [ErrInvalidKey],
// [ErrExpired] if From is no longer in the window, or is not of Timeline (list again and
// watch from the list's revision), or if storage without a cache is replaced while InitialState
// is read, or discards where the watch is to start each time that it is asked (see
// [Config].NoCache), [ErrFuture] if InitialState or Last, with From or Linearizable, is not reached in
// time, [ErrNotReady] if the backend cannot be reached, or was restored (see Linearizable), [ErrWatchNotStarted] if the
// engine failed meanwhile, [ErrEngineClosed], ctx's cause.
func (e *Engine[T]) Watch(ctx context.Context, opts WatchOptions) (*Watch[T], error) {
	return typedWatch[T](e.core.startWatch(ctx, opts.madeByCaller(), nil))
}

// Handle starts a watch that calls handle with its events, one at a time, in order. The
// handler may block: then only its own watch lags. It must return soon after the watch has
// ended, since Close waits for it. A handler that panics ends its watch with a
// [*PanicError]. [Engine.Process] is for handlers that need a context, or can fail.
//
// Errors: [ErrNilHandler], and as for Watch. After an error handle has not been called, and will
// not be: if ctx ends once it may have been, Handle returns the watch, which has ended.
func (e *Engine[T]) Handle(ctx context.Context, opts WatchOptions, handle func(Event[T])) (*Watch[T], error) {
	if handle == nil {
		return nil, ErrNilHandler
	}
	return typedWatch[T](e.core.startWatch(ctx, opts.madeByCaller(), eachEvent(handle)))
}

// eachEvent returns handle for the untyped core. If it were inlined into its caller, the
// loop would be copied there without what is inlined into it.
//
//go:noinline
func eachEvent[T any](handle func(Event[T])) func(*watcher.Delivery) {
	return func(d *watcher.Delivery) {
		for i, ev := range store.AsEvents[Event[T]](d.Events()) {
			if !begin(d, i) {
				return
			}
			handle(ev)
		}
	}
}

// begin is d.Begin. Go inlines in the user's package only what it has inlined in this one.
func begin(d *watcher.Delivery, i int) bool { return d.Begin(i) }

// startWatch is watch for the façade.
func (e *core) startWatch(ctx context.Context, opts WatchOptions, handle func(*watcher.Delivery)) (watchCore, error) {
	return e.watch(ctx, &opts, consumer{handle: handle})
}

// consumer is where a watch delivers its events. The zero value is a caller of Next.
type consumer struct {
	handle   func(*watcher.Delivery)
	retrying *watcher.RetryingHandler
}

// watch starts a watch for a consumer. With an error the result is nil.
func (e *core) watch(ctx context.Context, opts *WatchOptions, to consumer) (watchCore, error) {
	if err := e.accepts(); err != nil {
		return nil, err
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	filter, err := opts.filter(&e.cfg)
	if err == nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case !e.cfg.cached():
		return e.watchUncached(ctx, opts, filter, to)
	}
	deadline := e.deadline(ctx, opts)
	from, err := e.from(ctx, opts)
	if err != nil {
		return nil, err
	}
	w, reply := newWatch(&e.feed, opts, to), make(chan error, 1)
	return e.start(ctx, w, reply, opts.Detached, func() {
		e.parts.cache.Register(watchcache.Register{Watch: w, Filter: filter, From: from, Deadline: deadline, Timeline: opts.Timeline.expected(), Reply: reply})
	})
}

// deadline returns when the watch is to end, as far as that is known. If the context's
// deadline ends it, only a bookmark depends on the result. With a virtual clock that is not
// used, since contexts go by real time.
func (e *core) deadline(ctx context.Context, opts *WatchOptions) watcher.Deadline {
	if opts.Timeout > 0 {
		return watcher.Deadline{At: e.clockNow().Add(opts.Timeout)}
	}
	at, known := ctx.Deadline()
	if !known || opts.Detached || !opts.Bookmarks || !e.host.realTime {
		return watcher.Deadline{}
	}
	return watcher.Deadline{At: at, ByContext: true}
}

// newWatch makes a watch that reads feed for a consumer.
func newWatch(feed *watcher.Feed, opts *WatchOptions, to consumer) *watcher.Watch {
	options := watcher.Options{
		Policy: opts.Policy, Buffer: opts.Buffer, Bookmarks: opts.Bookmarks, Progress: opts.Progress, OnPool: opts.OnPool,
		Name: usercode.Name{Given: opts.Name, Made: opts.made},
	}
	switch {
	case to.retrying != nil:
		return watcher.NewRetrying(feed, options, *to.retrying)
	case to.handle != nil:
		return watcher.NewHandled(feed, options, to.handle)
	}
	return watcher.New(feed, options)
}

// start has a watch registered by ask, and returns it. That may run a turn of the dispatcher, in which user code
// may end the goroutine, and needs the clock, which may be the user's and panic: then no caller has the
// watch, and it is stopped.
func (e *core) start(ctx context.Context, w *watcher.Watch, reply <-chan error, detached bool, ask func()) (watchCore, error) {
	done := false
	defer func() {
		if !done {
			w.Stop()
		}
	}()
	ask()
	started, err := e.registered(ctx, w, reply, detached)
	done = true
	return started, err
}

// registered returns w once it is registered, or the error. From then on ctx ends w, unless
// it is detached. After an error the handler of w has not been called, and will not be.
func (e *core) registered(ctx context.Context, w *watcher.Watch, reply <-chan error, detached bool) (watchCore, error) {
	err := e.host.replyWithin(ctx, e.cfg.freshnessTimeout, reply)
	switch {
	case err == nil && !detached:
		w.StopWith(ctx)
	case err != nil:
		w.StopFor(err) // if it is registered later, it is removed at once
		if !isRegistered(reply) {
			return nil, e.translate(err)
		}
	}
	return w, nil
}

// isRegistered reports whether a watch that has ended was registered before that. Its handler may have
// been called then, since a watch is woken after the reply.
func isRegistered(reply <-chan error) bool {
	select {
	case err := <-reply:
		return err == nil
	default:
		return false
	}
}

// from returns where the watch starts, and waits until the cache has reached that if
// the start needs it.
func (e *core) from(ctx context.Context, opts *WatchOptions) (watcher.From, error) {
	from := watcher.From{
		Revision: opts.From, Last: opts.Last,
		Epoch: e.published.Load().Epoch, NotBefore: e.currentRevision(ctx), // in this order
		State: opts.InitialState, InitialEnd: opts.InitialState && opts.Bookmarks,
	}
	needed := opts.From
	if opts.Linearizable {
		current, wentBack, err := e.linearizable(ctx, e.published.Load())
		switch {
		case err != nil:
			return from, err
		case wentBack:
			return from, otherStorage()
		}
		from.NotBefore = current
		needed = max(needed, current)
	}
	switch {
	case opts.InitialState, opts.Last > 0:
		if err := waitForFrom(ctx, e, *opts); err != nil {
			return from, err
		}
		return from, e.fresh(ctx, needed)
	case opts.From > 0:
		return from, e.fresh(ctx, 0)
	}
	// A cache that is late may still reach NotBefore before it lists again: the watch
	// then starts there all the same.
	err := e.fresh(ctx, from.NotBefore)
	if errors.Is(err, ErrFuture) || errors.Is(err, ErrIdle) && e.parts.cache.Ready() {
		err = nil
	}
	return from, err
}

// currentRevision returns the storage's revision where reading that is no I/O, otherwise
// zero, which stands for the cache's. A watch that starts now must not start before it,
// since all acknowledged writes are up to it. The newest revision that a write has
// returned is not used, since storage may have gone back in time since.
func (e *core) currentRevision(ctx context.Context) Revision {
	b := e.storage.Backend()
	if b.Traits().Blocks {
		return 0
	}
	rev, err := b.Revision(ctx)
	if err != nil {
		return 0
	}
	return rev
}
