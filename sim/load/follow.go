package load

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/pipeline"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// follow reads with engine.Follow, which lists, resumes and lists again, until
// everything is read or ctx is done. With a history it gives up when a watch ends
// that it did not stop. It calls ready once it has its first list, and so will receive
// everything that is written after that.
func (w *watcher) follow(ctx context.Context, ready func()) {
	if w.lost != nil {
		return // the watcher was lost before the replay was continued
	}
	w.ready = ready
	w.run.settling.Add(1)
	defer w.run.settling.Add(-1)
	if w.group.spec.Consumer == scenario.Queue {
		if w.pipeline, w.lost = pipeline.New(nil); w.lost != nil {
			return
		}
		defer w.finishPipeline()
	}
	if w.run.history != nil && w.run.history.Resume != nil {
		if err := w.restore(ctx); err != nil && ctx.Err() == nil {
			w.markLost(err)
			return
		}
	}
	for ctx.Err() == nil {
		switch reason := w.session(ctx); {
		case errors.Is(reason, errRead):
			w.read = true
			return
		case errors.Is(reason, errReconnect):
			w.reconnects++
			w.resumed = true
			_ = pace.Sleep(ctx, w.group.spec.Reconnect.Away)
			w.beginConnecting()
		case errors.Is(reason, errWritten): // read what is left
		case ctx.Err() == nil:
			w.markLost(reason)
			return
		}
	}
}

// session follows the engine until there is a reason to stop, which it returns.
func (w *watcher) session(ctx context.Context) error {
	if err := w.checkRead(); err != nil {
		return err
	}
	session, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	// Only a watcher that has everything is stopped: stopping another would hide that
	// its watch has ended, which the watcher may not have learned yet.
	defer context.AfterFunc(w.run.reading, func() {
		if w.hasEverything() {
			leave(errWritten)
		}
	})()
	w.interrupt.Store(&leave)
	defer w.interrupt.Store(nil)
	w.updated = false
	current := &following{leave: leave}
	w.following.Store(current)
	defer w.following.Store(nil)
	defer w.reconnectAfter(leave)()
	for up, err := range engine.Follow(session, w.run.engine, w.watchOptions(engine.Revision(w.at.Load()))) {
		if err == nil {
			err = w.update(ctx, up)
		}
		if watch := current.complete.Load(); watch != nil && errors.Is(err, errWritten) {
			return w.passed(watch)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// update handles an update of Follow, up to where the watcher disconnects.
func (w *watcher) update(ctx context.Context, up engine.Update[content.Item]) error {
	if err := w.recordEnd(up.Cause); err != nil {
		return err
	}
	if up.List != nil {
		if err := w.listed(up.List); err != nil {
			return err
		}
		return w.reached(up.Revision)
	}
	n := w.untilBreak(up.Events)
	if w.pace != nil {
		if err := w.pace.Wait(ctx, n); err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.take(up.Events[:n]...)
	w.mu.Unlock()
	if w.pipeline != nil {
		if err := w.pipeline.Queue(up.Events[:n]); err != nil {
			return err
		}
	}
	if n < len(up.Events) { // disconnected in the middle: the rest is lost
		w.at.Store(uint64(up.Events[n-1].Revision))
		return errReconnect
	}
	return w.reached(up.Revision)
}

// recordEnd records why the previous watch ended and was reopened, or why the session's first
// could not be opened at first, if cause is not nil. It returns the cause if it ends a watcher
// of a history: every cause does, unless the watcher had disconnected and the window no longer
// reaches back to that point, or the engine was not ready when the session began, as on a busy
// machine: Follow then tried again, so that nothing was missed.
func (w *watcher) recordEnd(cause error) error {
	disconnected, first := w.resumed, !w.updated
	w.resumed, w.updated = false, true
	_, ended := errors.AsType[*engine.EndError](cause)
	unopened := first && !ended
	switch {
	case cause == nil, disconnected && errors.Is(cause, engine.ErrExpired):
	case w.run.history != nil && !(unopened && errors.Is(cause, engine.ErrNotReady)):
		w.countEnd(cause)
		return cause
	case unopened:
		w.run.failure(w.name(), cause)
	default:
		w.reconnects++
		w.countEnd(cause)
	}
	return nil
}

// listed handles a list, which replaces the watcher's state.
func (w *watcher) listed(list *engine.List[content.Item]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, begun := w.trail.At(); begun {
		w.relists++
	}
	w.trail.List(list)
	if w.pipeline != nil {
		return w.pipeline.Replace(list.Items, list.Revision)
	}
	return nil
}

// reached records that the watcher has everything up to a revision, and returns the
// reason to stop there, if any.
func (w *watcher) reached(rev engine.Revision) error {
	w.at.Store(uint64(rev))
	w.ready()
	w.mu.Lock()
	w.trail.Reach(rev)
	w.updatePosition(rev)
	w.mu.Unlock()
	if w.breaks.Due(w.run.progressAt(rev)) {
		return errReconnect
	}
	return w.checkRead()
}

// hasEverything reports whether everything is written and the watcher has all of it.
func (w *watcher) hasEverything() bool {
	return errors.Is(context.Cause(w.run.reading), errWritten) && engine.Revision(w.at.Load()) >= w.need
}

// checkRead returns errRead if the watcher has everything that will be written, or
// errReconnect while it has disconnects left.
func (w *watcher) checkRead() error {
	switch {
	case !w.hasEverything():
		return nil
	case w.breaks.Due(1):
		return errReconnect
	}
	return errRead
}

// untilBreak returns how many of the events the watcher receives before it disconnects. It
// does not disconnect after a conflated event, when its state is not that of any revision.
func (w *watcher) untilBreak(events []engine.Event[content.Item]) int {
	for i := range events[:max(0, len(events)-1)] { // reached checks after the last event
		if events[i].Marks == 0 && w.breaks.Due(w.run.progressAt(events[i].Revision)) {
			return i + 1
		}
	}
	return len(events)
}

// finishPipeline waits until the queue is empty. The watcher's state is then the
// indexer's.
func (w *watcher) finishPipeline() {
	objects, err := w.pipeline.Finish()
	w.trail.ReplaceObjects(objects)
	if err != nil {
		w.run.failure(w.name(), err)
	}
}

// follows reports whether the group's watchers use engine.Follow.
func follows(spec *scenario.Watcher) bool {
	return spec.Consumer == scenario.Follow || spec.Consumer == scenario.Queue
}
