package engine

import (
	"context"
	"iter"
	"time"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Watch is a running watch: a position in the engine's log, with a filter. It has one
// consumer, of one kind: Next, Batches or Events; or Chan; or the handler of
// [Engine.Handle]. The methods that consume are for one goroutine at a time; the others
// are safe for concurrent use and, except Wait, do not block.
type Watch[T any] struct{ core watchCore }

// watchCore is the untyped core of a Watch: a [watcher.Watch]; see [engineCore].
type watchCore interface {
	Next(ctx context.Context) ([]store.Event, error)
	Batches() iter.Seq2[[]store.Event, error]
	Events() iter.Seq2[store.Event, error]
	Pump(send func(store.Event) bool, last func())
	Stop()
	Wait(ctx context.Context) error
	Done() <-chan struct{}
	Err() error
	Revision() store.Revision
	Delivered() uint64
	Name() string
	Lag() uint64
	Behind() time.Duration
	Lost() uint64
	Stalled() bool
}

var _ watchCore = (*watcher.Watch)(nil)

func typedWatch[T any](w watchCore, err error) (*Watch[T], error) {
	if err != nil {
		return nil, err
	}
	return &Watch[T]{w}, nil
}

// Next returns the next events, at least one. It blocks until there are some, ctx is
// done (it returns ctx's cause, and the watch continues), or the watch has ended (it
// returns the reason, each time). Err tells which: the reason can match an error of a context, too, as
// [ErrDeadline] does. The slice is shared with other watches: read it, do not change it. It fails with
// [ErrConsumerConflict] if the watch has another consumer, and so do Batches and Events.
func (w *Watch[T]) Next(ctx context.Context) ([]Event[T], error) {
	events, err := w.core.Next(ctx)
	return store.AsEvents[Event[T]](events), err
}

// Batches ranges over the watch's batches. The last pair has no events and the reason
// that the watch ended. Breaking out of the loop loses nothing and does not stop the
// watch: range again to continue with the next batch, or Stop it. As with Next, a batch is
// shared with other watches: read it, do not change it.
func (w *Watch[T]) Batches() iter.Seq2[[]Event[T], error] {
	return func(yield func([]Event[T], error) bool) {
		for events, err := range w.core.Batches() {
			if !yield(store.AsEvents[Event[T]](events), err) {
				return
			}
		}
	}
}

// Events ranges over the watch's events. The last pair has the zero event and the
// reason that the watch ended. Breaking out of the loop loses nothing and does not stop
// the watch: range again to continue with the next event, or Stop it. The loop's body must not
// consume: Next, Batches and Events fail there with [ErrConsumerConflict].
func (w *Watch[T]) Events() iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		for ev, err := range w.core.Events() {
			if !yield(typedEvent[T](ev), err) {
				return
			}
		}
	}
}

// Chan returns a channel of the watch's events. It is closed when the watch ends; Err
// then returns the reason. The channel is unbuffered, since the watch needs no buffer.
// It is the only consumer that costs a goroutine. Breaking out of a loop over it does
// not stop the watch, and a loop over it again continues with the next event.
//
// On a deterministic host nothing runs while the test receives from the channel: use
// another consumer there.
//
// A watch that already has another consumer gets a closed channel.
func (w *Watch[T]) Chan() <-chan Event[T] {
	out := make(chan Event[T])
	done := w.Done()
	send := func(ev store.Event) bool {
		select {
		case out <- typedEvent[T](ev):
			return true
		case <-done:
			return false
		}
	}
	w.core.Pump(send, func() { close(out) })
	return out
}

// Stop ends the watch with [ErrStopped]. It does not wait for a handler: a call that
// has begun goes on, or is about to run its first line, and none follows it. [Watch.Wait]
// waits for it. Stopping an ended watch has no effect.
func (w *Watch[T]) Stop() { w.core.Stop() }

// Wait blocks until the watch has ended, however, and its handler, if it has one, has
// returned from its last call: what the handler uses may be released then. If ctx ends
// first, it returns ctx's cause. The handler must not call it, since it would wait for
// itself.
func (w *Watch[T]) Wait(ctx context.Context) error { return w.core.Wait(ctx) }

// Done returns a channel that is closed when the watch ends.
func (w *Watch[T]) Done() <-chan struct{} { return w.core.Done() }

// Err returns why the watch ended, or nil while it has not.
func (w *Watch[T]) Err() error { return w.core.Err() }

// Revision returns the revision from which a new watch continues without loss:
// everything up to it has been delivered. It is zero while the initial state is
// incomplete: start over then.
//
// It is never ahead of the consumer. It is exact once the consumer has asked for more
// events, stopped ranging, or its handler has returned; then events that are not for
// the watch advance it, too. While a handler works through a batch, just after a receive
// from Chan, or after an event marked Conflated, it may be behind.
func (w *Watch[T]) Revision() Revision { return w.core.Revision() }

// Delivered returns how many events, bookmarks included, the consumer was given. A batch
// counts as a whole when a loop or a handler comes to its first event.
func (w *Watch[T]) Delivered() uint64 { return w.core.Delivered() }

// Name returns the name of the watch in errors and logs: [WatchOptions].Name, or the file
// and line of the call that started it.
func (w *Watch[T]) Name() string { return w.core.Name() }

// Lag returns how many events the watch has yet to deliver, from [Watch.Revision] to the
// newest committed one, without the rest of an initial state. The events that a handler
// got as one batch count until it has handled them all. Events that the dispatcher has
// not filtered yet count whether the watch selects them or not. So do events of the
// window while the watch catches up. Before a start that had not come, it counts from there.
func (w *Watch[T]) Lag() uint64 { return w.core.Lag() }

// Behind returns how long ago the oldest event was committed that was not delivered, or
// that the handler has not handled; zero if there is none. A watch that is still
// delivering its initial state is behind since it was started. So it shows a consumer
// that is stuck even if few events are pending. It goes by the host's clock, whereas
// [Object].Written is by that of storage.
func (w *Watch[T]) Behind() time.Duration { return w.core.Behind() }

// Lost returns how many events were left out under the policy [Conflate], after the
// window had moved past the watch: superseded states, objects that were created and
// deleted in between, and emitted values. For a watch with a selector it is an upper
// bound, since the selector is not applied to what was left out.
//
// The next emitted value is then marked [AfterGap]. So is the next event of any type, if
// no event came that is marked [Conflated].
func (w *Watch[T]) Lost() uint64 { return w.core.Lost() }

// Stalled reports whether the watch lagged more than [WatchOptions].Buffer and has not
// caught up since. It stays as it was when the watch ended.
func (w *Watch[T]) Stalled() bool { return w.core.Stalled() }
