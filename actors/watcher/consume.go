package watcher

import (
	"context"
	"iter"

	"github.com/watchmill/watchmill/store"
)

// consumerKind is how a watch is consumed, set by the first use.
type consumerKind int32

const (
	undecided consumerKind = iota
	byPull
	byChannel
	byHandler
	byNotify
)

func (w *Watch) consumeBy(kind consumerKind) error {
	if w.kind.CompareAndSwap(int32(undecided), int32(kind)) || w.kind.Load() == int32(kind) {
		return nil
	}
	return ErrConsumerConflict
}

// pull is consumeBy for a pulled watch, and refuses what the body of a loop of Events calls: the
// loop has taken events that come before.
func (w *Watch) pull() error {
	if err := w.consumeBy(byPull); err != nil {
		return err
	}
	if w.begun > 0 {
		return ErrConsumerConflict
	}
	return nil
}

// Next returns the next events, at least one. It blocks until there are some, ctx
// is done (it returns ctx's cause, and the watch continues), or the watch has ended
// (it returns the reason, each time). The slice is shared with other watches: read
// it, do not change it. It fails with [ErrConsumerConflict] if the watch has another
// consumer, and in the body of a loop of Events.
func (w *Watch) Next(ctx context.Context) ([]store.Event, error) {
	if err := w.pull(); err != nil {
		return nil, err
	}
	events, err := w.next(ctx)
	w.passedAll(events, len(events))
	return events, err
}

func (w *Watch) next(ctx context.Context) ([]store.Event, error) {
	for {
		events, err := w.takeWithin(ctx)
		if len(events) > 0 || err != nil {
			return events, err
		}
		if err := w.feed.await(ctx, w.ready()); err != nil {
			return nil, err
		}
	}
}

// readyChannel is the signal target of a pulled watch.
type readyChannel chan struct{}

func (c readyChannel) signal() {
	select {
	case c <- struct{}{}:
	default: // the consumer is signalled already
	}
}

// ready returns the channel on which the watch signals its consumer.
func (w *Watch) ready() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.target.(readyChannel)
	if !ok {
		c = make(readyChannel, 1)
		// Earlier signals had no target: make the consumer read once more.
		c.signal()
		w.target = c
	}
	return c
}

// Batches ranges over the watch's batches. The last pair has no events and the
// reason that the watch ended. Breaking out of the loop does not stop the watch:
// range again, or Stop it.
func (w *Watch) Batches() iter.Seq2[[]store.Event, error] {
	return func(yield func([]store.Event, error) bool) {
		for {
			events, err := w.Next(context.Background())
			if !yield(events, err) || err != nil {
				return
			}
		}
	}
}

// Events ranges over the watch's events. The last pair has the zero event and the
// reason that the watch ended. Breaking out of the loop does not stop the watch:
// range again to continue with the next event, or Stop it. A loop in the body of another gets
// [ErrConsumerConflict].
func (w *Watch) Events() iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		if err := w.pull(); err != nil {
			yield(store.Event{}, err)
			return
		}
		for {
			events, err := w.next(context.Background())
			if err != nil {
				yield(store.Event{}, err)
				return
			}
			if !w.yieldEach(events, yield) {
				return
			}
		}
	}
}

// yieldEach yields the events until the watch ends or yield returns false, which it
// reports. The remaining events, even after a panic of the loop's body, are kept for
// the next read.
func (w *Watch) yieldEach(events []store.Event, yield func(store.Event, error) bool) (more bool) {
	given := 0
	w.begun = uint32(len(events))
	defer func() {
		w.begun = 0
		w.hold(events[given:])
	}()
	for given < len(events) && !w.flags.has(ended) {
		ev := events[given]
		given++
		w.passedAll(events, given)
		if !yield(ev, nil) {
			return false
		}
	}
	return true
}

// Pump passes the watch's events to send, on a goroutine of the engine's host, until
// the watch ends or send returns false; then it calls last. If the watch already has
// another consumer, it passes nothing.
func (w *Watch) Pump(send func(store.Event) bool, last func()) {
	if !w.kind.CompareAndSwap(int32(undecided), int32(byChannel)) {
		last()
		return
	}
	w.feed.Go(func() {
		defer last()
		done := false
		defer w.endUnless(&done)
		w.pump(send)
		done = true
	})
}

func (w *Watch) pump(send func(store.Event) bool) {
	for {
		events, err := w.next(context.Background())
		if err != nil {
			return
		}
		for i, ev := range events {
			if w.feed.Yield != nil {
				w.feed.Yield()
			}
			// Once it has ended, send may still find a receiver, for one event after the other.
			if w.flags.has(ended) || !send(ev) {
				return
			}
			w.passedAll(events, i+1)
		}
	}
}
