package enginetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// Watch is a watch that expectations can be put on. They pull it, so a test
// that uses them must not call Next, Events, Batches or Chan too.
type Watch[T any] struct {
	*engine.Watch[T]
	engine   *engine.Engine[T]
	patience time.Duration
	// pending was taken from the watch and is not accounted for yet.
	pending []engine.Event[T]
	// end is why the watch ended, when all before has been taken.
	end error
}

// settleTimeout is how long, in real time, a watch may take to catch up with
// what has been dispatched. It is a bound for broken engines: others take
// microseconds.
const settleTimeout = 10 * time.Second

// noWait is a context that makes Next return what there is.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// take moves what the watch has to hand out to pending, without waiting. It
// returns an error only if the watch cannot be pulled.
func (w *Watch[T]) take() error {
	for w.end == nil {
		events, err := w.Next(noWait)
		w.pending = append(w.pending, events...)
		switch {
		case err == nil:
		case errors.Is(err, engine.ErrConsumerConflict):
			return fmt.Errorf("%w; expectations pull it themselves", err)
		case w.Err() == nil:
			return nil // that was noWait: there is nothing more for now
		default:
			w.end = w.Err()
		}
	}
	return nil
}

// settle takes everything that the watch is to deliver of what has been
// written so far, or up to its end.
func (w *Watch[T]) settle(ctx context.Context) error {
	rev, err := w.engine.Backend().Revision(ctx)
	if err != nil {
		if w.Err() != nil {
			return w.take() // the engine is closed: nothing comes any more
		}
		return fmt.Errorf("asking the backend for its revision: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := w.reached(ctx, rev); err != nil && w.Err() == nil {
		return fmt.Errorf("waiting until revision %d is dispatched: %w", rev, err)
	}
	for {
		if err := w.take(); err != nil || w.end != nil || w.Revision() >= rev && w.Lag() == 0 {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the watch is at revision %d and does not come to %d", w.Revision(), rev)
		}
		runtime.Gosched() // only without a cache, or in a Drain: nothing shows when the watch has caught up
	}
}

// reached waits until rev has been dispatched: a new watch is registered behind
// all that the cache has published before, which WaitForRevision makes sure is rev. An engine that is
// being drained refuses it.
func (w *Watch[T]) reached(ctx context.Context, rev engine.Revision) error {
	if err := w.engine.WaitForRevision(ctx, rev); err != nil {
		return err
	}
	last, err := w.engine.Watch(ctx, engine.WatchOptions{Key: marker, Name: marker})
	switch {
	case errors.Is(err, engine.ErrDraining):
		return nil
	case err != nil:
		return err
	}
	last.Stop()
	return nil
}

// marker is the name, and the key, of the watches by which the package finds out what has been
// dispatched. Config.OnEnd is not called for them.
const marker = "enginetest's marker"

// await takes at least one event more, or the end, and waits for it as long as
// ctx allows. It reports whether something came.
func (w *Watch[T]) await(ctx context.Context) bool {
	if w.end != nil {
		return false
	}
	events, _ := w.Next(ctx)
	w.pending = append(w.pending, events...)
	if len(events) == 0 && w.Err() != nil {
		w.end = w.Err()
		return true
	}
	return len(events) > 0
}

// awaitUntil takes what comes until done, for as long as the watch's patience.
func (w *Watch[T]) awaitUntil(ctx context.Context, done func() bool) {
	if w.patience == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	for !done() && w.await(ctx) {
	}
}
