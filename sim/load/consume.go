package load

import (
	"context"
	"errors"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// connect opens a watch for the group's kind of consumer. The caller holds mu, so that the
// handler receives no event before the watcher knows its watch.
func (w *watcher) connect(ctx context.Context, opts engine.WatchOptions) (*engine.Watch[content.Item], error) {
	if w.group.spec.Consumer != scenario.Handler {
		return w.run.engine.Watch(ctx, opts)
	}
	var self *engine.Watch[content.Item]
	watch, err := w.run.engine.Handle(ctx, opts, func(ev engine.Event[content.Item]) { w.handle(ctx, &self, ev) })
	self = watch
	return watch, err
}

// handle receives one event of a handler's watch. It ignores those of a watch that
// has been stopped meanwhile: the next watch delivers them again.
func (w *watcher) handle(ctx context.Context, self **engine.Watch[content.Item], ev engine.Event[content.Item]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil || w.current != *self {
		return
	}
	if panicked := w.panicNext.Swap(nil); panicked != nil {
		panicked.Add(1)
		panic("by the scenario")
	}
	if w.pace != nil && w.pace.Wait(ctx, 1) != nil {
		(*self).Stop() // or the handler would be called with all that follows, at once
	}
	w.take(ev)
}

// consume reads a watch until there is a reason to stop it, which it returns.
func (w *watcher) consume(ctx context.Context, watch *engine.Watch[content.Item]) error {
	session, leave := context.WithCancelCause(w.run.reading)
	defer leave(nil)
	w.interrupt.Store(&leave)
	defer w.reconnectAfter(leave)()
	switch w.group.spec.Consumer {
	case scenario.Handler:
		return w.await(ctx, session, watch, nil)
	case scenario.Channel:
		return w.await(ctx, session, watch, watch.Chan())
	}
	return w.pull(ctx, session, watch)
}

// reconnectAfter calls leave with errReconnect at a random time, if the group
// reconnects, unless stopped before.
func (w *watcher) reconnectAfter(leave context.CancelCauseFunc) (stop func()) {
	every := w.group.spec.Reconnect.Every
	if every <= 0 {
		return func() {}
	}
	after := time.Duration((0.5 + w.rand.Float64()) * float64(every))
	timer := time.AfterFunc(after, func() { leave(errReconnect) })
	return func() { timer.Stop() }
}

// pull reads batches.
func (w *watcher) pull(ctx, session context.Context, watch *engine.Watch[content.Item]) error {
	for {
		events, err := watch.Next(session)
		switch {
		case len(events) > 0:
			err = w.takeAll(ctx, session, watch, events)
		case errors.Is(err, errWritten):
			err = w.finish(ctx, watch)
		}
		if err != nil {
			return err
		}
	}
}

// takeAll receives a batch: at once, or each event when the pace allows.
func (w *watcher) takeAll(ctx, session context.Context, watch *engine.Watch[content.Item], events []engine.Event[content.Item]) error {
	if w.pace == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.take(events...)
		return nil
	}
	for _, ev := range events {
		err := w.pace.Wait(ctx, 1)
		if cause := context.Cause(session); err == nil && errors.Is(cause, errReconnect) {
			err = cause
		}
		if err != nil {
			watch.Stop() // at a revision that the trail must not use: it counts the rest of the batch as delivered
			return err
		}
		w.mu.Lock()
		w.take(ev)
		w.mu.Unlock()
	}
	return nil
}

// await waits while a handler receives the events or, if events is not nil, receives them
// from that channel. It returns the reason to stop.
func (w *watcher) await(ctx, session context.Context, watch *engine.Watch[content.Item], events <-chan engine.Event[content.Item]) error {
	left := session.Done()
	var written <-chan time.Time
	for {
		select {
		case ev, ok := <-events:
			if !ok { // the watch has ended, or is about to
				<-watch.Done()
				return watch.Err()
			}
			if err := w.takeAll(ctx, session, watch, []engine.Event[content.Item]{ev}); err != nil {
				return err
			}
		case <-watch.Done():
			return watch.Err()
		case <-left:
			if cause := context.Cause(session); !errors.Is(cause, errWritten) {
				return cause
			}
			ticker := time.NewTicker(2 * time.Millisecond)
			defer ticker.Stop()
			left, written = nil, ticker.C
		case <-written:
			if err := w.finish(ctx, watch); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// finish returns errRead once the watch has reached the last write that it selects,
// and nil, after a moment, while it has not.
func (w *watcher) finish(ctx context.Context, watch *engine.Watch[content.Item]) error {
	if watch.Revision() >= w.need {
		return errRead
	}
	return pace.Sleep(ctx, time.Millisecond)
}

// take records events. The caller holds mu.
func (w *watcher) take(events ...engine.Event[content.Item]) {
	now := w.run.stopwatch.Now()
	latency, handed := w.scratch[0][:0], w.scratch[1][:0]
	changes := uint64(0)
	for i := range events {
		ev := &events[i]
		w.trail.Receive(ev)
		if ev.Type == engine.Bookmark || ev.Is(engine.Initial) {
			continue // no write of the load is the cause
		}
		changes++
		if !w.hasLatency(ev) {
			continue
		}
		it := &ev.Object.Value
		late := now - it.Due
		latency, handed = append(latency, late), append(handed, now-it.Stored)
		w.latencySum, w.latencyCount, w.latencyMax = w.latencySum+late, w.latencyCount+1, max(w.latencyMax, late)
	}
	w.scratch = [2][]int64{latency, handed}
	w.delivered.Add(changes)
	w.taken = now
	w.group.latency.RecordAll(w.number, latency)
	w.group.handed.RecordAll(w.number, handed)
}

// hasLatency reports whether the object of ev says when it was written, by this load and after the
// watcher had connected.
func (w *watcher) hasLatency(ev *engine.Event[content.Item]) bool {
	return ev.Object != nil && ev.Type != engine.Deleted && !ev.Is(engine.Conflated) &&
		!w.run.inherits(ev.Revision) && ev.Object.Value.Stored >= w.connecting
}
