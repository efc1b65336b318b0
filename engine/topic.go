package engine

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// Topic is an event bus for values of one type: every subscriber gets every published
// message, in one order; messages are not kept as state. It is an [Engine] that only
// emits, so slow subscribers, replay, resuming and ends work as for watches. Make one
// with [NewTopic]; all methods are safe for concurrent use.
//
//	Publish ──▶ history, bounded ──▶ Reflector ──▶ window ──▶ Subscribe: handler
//	   ▲ waits only if the window                        ├──▶ Messages: iterator
//	   └ is thousands of messages behind                 └──▶ Watch: events with revisions
//
// Messages are shared by the publisher and all subscribers: what a message refers to, by a
// pointer, a slice or a map, must not be changed once it was published.
// [TopicOptions].DetectMutations finds such changes in tests.
type Topic[T any] struct{ core topicCore }

// topicCore is the untyped core of the façade; see [engineCore].
type topicCore interface {
	publish(ctx context.Context, message *store.Object) (Revision, error)
	subscribe(ctx context.Context, handle func(*watcher.Delivery), opts SubscribeOptions) (*Subscription, error)
	process(ctx context.Context, opts SubscribeOptions, policy ErrorPolicy, handle func(context.Context, store.Event) error) (*Subscription, error)
	startWatch(ctx context.Context, opts SubscribeOptions) (watchCore, error)
	stats() Stats
	watches() []WatchInfo
	drain(ctx context.Context) error
	close() error
	livenessOf() *liveness
}

// topic is the untyped Topic.
type topic struct {
	engine *core // nil if the topic failed to start
	policy Policy
	buffer int
	// last is the newest published revision that a publisher has recorded.
	last atomic.Uint64
	// misuse is the error that prevented the start; nil if the topic was started.
	misuse error
}

// TopicOptions configures a topic. The zero value is for production.
type TopicOptions struct {
	// Replay is how many of the newest messages are kept for later subscribers,
	// whatever their age; see [SubscribeOptions].Last. Zero keeps those that Window keeps.
	Replay int
	// Policy and Buffer are the defaults of subscriptions. [Conflate] is refused,
	// since it needs state, which a topic does not have.
	Policy Policy
	Buffer int
	// Window bounds the messages that subscribers may lag behind and resume
	// from; see [Window] for the defaults. Its MinEvents is Replay.
	Window Window
	// FirstRevision comes before that of the first message; see
	// [Config].FirstRevision.
	FirstRevision Revision
	// Host is where the topic's actors run; nil means a host of its own. A given
	// host is not closed with the topic.
	Host *Host
	// Name is what the topic's actors are called in errors and logs; empty means
	// the type's name.
	Name string
	// DetectMutations and OnError are as in [Config].
	DetectMutations bool
	OnError         func(error)
	// OnEnd is called for each subscription that has ended, and Metrics gets the
	// measurements of this topic, as in [Config].
	OnEnd   func(WatchEnd)
	Metrics Metrics
}

// The engine of a topic has one key. The history needs to hold only what the
// Reflector has not read yet, so publishers are held back when it is maxAhead
// messages behind: that is several of its batches, and little memory. Twice as
// many stay, so that thousands of publishers that pass the check at once lose
// nothing either. They stay whatever their age, which therefore may be short.
const (
	topicKey   = "message"
	maxAhead   = 4096
	historyAge = time.Second
)

// NewTopic starts a topic. Close it when done.
//
// It has the zero [TopicOptions], with which starting a topic does not fail.
func NewTopic[T any]() *Topic[T] { return NewTopicWith[T](TopicOptions{}) }

// NewTopicWith is NewTopic with options. If the options are wrong, or the host is
// closed, every Publish and subscription fails with a [*ConfigError] or
// [ErrEngineClosed].
func NewTopicWith[T any](opts TopicOptions) *Topic[T] { return NewTopicCarrying[T](opts, nil) }

// NewTopicCarrying is NewTopicWith for messages that carry something of the context they
// are published with, such as the trace context that subscribers continue. Publish calls
// carry once for each message, and publishes its result; see [Config].Carry for its
// rules. If carry panics, Publish fails. Nil carries nothing.
func NewTopicCarrying[T any](opts TopicOptions, carry func(ctx context.Context, message T) T) *Topic[T] {
	cfg := Config[T]{Key: func(T) string { return topicKey }, Carry: carry}
	t := &Topic[T]{newTopic(settingsOf(&cfg), opts)}
	reportLeak(t, t.core.livenessOf())
	return t
}

// newTopic is the untyped NewTopic.
func newTopic(cfg settings, opts TopicOptions) topicCore {
	t := &topic{}
	err := opts.validate()
	if err == nil {
		err = t.start(cfg, opts)
	}
	t.misuse = err
	return t
}

func (o *TopicOptions) validate() error {
	switch {
	case o.Replay < 0:
		return &ConfigError{Field: "TopicOptions.Replay", Problem: fmt.Sprintf("is %d; give the number of messages to keep, or zero", o.Replay)}
	case o.Buffer < 0:
		return &ConfigError{Field: "TopicOptions.Buffer", Problem: fmt.Sprintf("is %d; give a number of messages, or zero for the default", o.Buffer)}
	case o.Window.MinEvents != 0:
		return &ConfigError{Field: "TopicOptions.Window.MinEvents", Problem: "is set; give Replay, which means the same"}
	}
	if err := ValidateHost("TopicOptions.Host", o.Host); err != nil {
		return err
	}
	if problem := policyProblem(o.Policy); problem != "" {
		return &ConfigError{Field: "TopicOptions.Policy", Problem: problem}
	}
	if err := o.Window.Validate("TopicOptions.Window"); err != nil {
		return err
	}
	if most := cmp.Or(o.Window.MaxEvents, window.DefaultMaxEvents); o.Replay > most {
		return &ConfigError{Field: "TopicOptions.Replay", Problem: fmt.Sprintf("is %d, more than Window.MaxEvents, %d; raise that", o.Replay, most)}
	}
	return nil
}

// policyProblem returns what is wrong with p for a topic, "" if nothing.
func policyProblem(p Policy) string {
	switch {
	case p == Conflate:
		return "is conflate, which keeps the newest state of each key, but a topic has no state; give Park or Terminate"
	case !p.Valid():
		return fmt.Sprintf("is %v; give Park or Terminate", p)
	}
	return ""
}

// start starts the topic's engine, over storage of its own.
func (t *topic) start(cfg settings, o TopicOptions) (err error) {
	t.policy, t.buffer = o.Policy, o.Buffer
	cfg.host, cfg.firstRevision = o.Host, o.FirstRevision
	cfg.window, cfg.retained = o.Window, Window{MinEvents: 2 * maxAhead, MinAge: historyAge}
	cfg.window.MinEvents = o.Replay
	cfg.name = cmp.Or(o.Name, "topic of "+cfg.name)
	cfg.detectMutations, cfg.onError = o.DetectMutations, o.OnError
	cfg.onEnd, cfg.metrics, cfg.endReason = o.OnEnd, o.Metrics, ofTopic
	t.engine, err = newCore(cfg)
	return err
}

// Publish sends message to all subscribers and returns its revision. It does not wait
// for subscribers, so a handler may publish too. It waits only if publishers are
// thousands of messages ahead of the topic's window, until that has caught up.
//
// Errors: [ErrEngineClosed]; the error of NewTopic; ctx's cause; [ErrFuture] if the
// topic does not catch up within [DefaultFreshnessTimeout], or [ErrNotReady] if OnPool handlers
// block all its workers for as long. After an error nothing was sent, unless that is a
// [backend.ErrUncertain] of a topic that is being drained, whose subscribers may get the message.
func (t *Topic[T]) Publish(ctx context.Context, message T) (Revision, error) {
	return t.core.publish(ctx, draft(&message))
}

func (t *topic) publish(ctx context.Context, message *store.Object) (Revision, error) {
	if t.misuse != nil {
		return 0, t.misuse
	}
	if err := t.catchUp(ctx); err != nil {
		return 0, err
	}
	rev, err := t.emit(ctx, message)
	if err == nil {
		t.note(rev)
	}
	return rev, err
}

// emit is the engine's emit for messages, whose key is always the same, and which have
// no labels and fields.
func (t *topic) emit(ctx context.Context, message *store.Object) (Revision, error) {
	if err := t.engine.accepts(); err != nil {
		return 0, err
	}
	message.Key = topicKey
	if err := t.engine.carry(ctx, nil, message, expiry{}); err != nil {
		return 0, err
	}
	return t.engine.emitDescribed(ctx, message)
}

// catchUp waits while the window is more than maxAhead behind, until it is at most half
// that, so that a continuous publisher waits only once per many messages. It also waits
// for the window's start, since the window does not have earlier messages.
func (t *topic) catchUp(ctx context.Context) error {
	reached, last := t.engine.newest(), Revision(t.last.Load())
	switch {
	case reached == 0:
		return t.engine.waitFor(ctx, 1)
	case last >= reached+maxAhead:
		return t.engine.waitFor(ctx, last-maxAhead/2)
	}
	return nil
}

// note raises last to rev.
func (t *topic) note(rev Revision) {
	for {
		last := t.last.Load()
		if last >= uint64(rev) || t.last.CompareAndSwap(last, uint64(rev)) {
			return
		}
	}
}

// Messages subscribes at once, and returns an iterator over the messages. The last pair
// has the zero message and the reason that the subscription ended, or an error of
// Subscribe. Breaking out of the loop ends the subscription and loses nothing: ranging
// again subscribes after the last message, unless that has [ErrExpired] meanwhile. If it
// cannot subscribe now, the next loop tries again. Without a loop the subscription lives
// until ctx is done or the topic is closed. An iterator is for one goroutine and one
// loop at a time: a loop within a loop over the same iterator gets
// [ErrConsumerConflict].
func (t *Topic[T]) Messages(ctx context.Context, opts SubscribeOptions) iter.Seq2[T, error] {
	opts = opts.madeByCaller()
	w, err := t.Watch(ctx, opts)
	var over error // why the subscription has ended
	ranging := false
	return func(yield func(T, error) bool) {
		var none T
		switch {
		case ranging:
			yield(none, fmt.Errorf("a loop within a loop over the same Messages: %w", ErrConsumerConflict))
			return
		case over != nil:
			yield(none, over)
			return
		case w == nil && err == nil: // an earlier loop was left, or could not subscribe
			w, err = t.Watch(ctx, opts)
		}
		if failed := err; failed != nil {
			err = nil
			yield(none, failed)
			return
		}
		ranging = true
		defer func() {
			opts.From, opts.Last = w.Revision(), 0
			w.Stop()
			w, ranging = nil, false
		}()
		for ev, end := range w.Events() {
			if end != nil {
				over = end
				yield(none, end)
				return
			}
			if !yield(ev.Object.Value, nil) {
				return
			}
		}
	}
}

// Drain closes the topic after every message that was published has been handled:
// Publish and new subscriptions fail with [ErrDraining], each subscription ends when
// its handler has returned from the last message, and the topic closes. If ctx is
// done first, it is closed all the same, and the error is an [*UndeliveredError]
// that names the subscriptions that are behind. As Close does, that waits for handlers
// that still run; see [Engine.Drain].
func (t *Topic[T]) Drain(ctx context.Context) error { return t.core.drain(ctx) }

func (t *topic) drain(ctx context.Context) error {
	if t.misuse != nil {
		return t.close()
	}
	return t.engine.drain(ctx)
}

// Close ends all subscriptions with [ErrEngineClosed] and waits until all goroutines
// and timers of the topic have ended. It fails if a handler does not return, and does
// not wait if a handler calls it; see [Engine.Close]. Closing again returns the first
// result.
func (t *Topic[T]) Close() error { return t.core.close() }

func (t *topic) close() error {
	if t.misuse != nil {
		return nil // it did not start
	}
	return t.engine.close()
}

// Stats returns the topic's counters: Events counts the messages, Watches the
// subscriptions. It is zero for a topic that failed to start.
func (t *Topic[T]) Stats() Stats { return t.core.stats() }

func (t *topic) stats() Stats {
	if t.misuse != nil {
		return Stats{}
	}
	return t.engine.stats()
}
