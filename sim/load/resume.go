package load

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
)

// open starts a watch where the one before stopped. If that is gone from the
// window it lists, and goes on from there: it has been told.
func (w *watcher) open(ctx context.Context) (*engine.Watch[content.Item], error) {
	w.mu.Lock()
	from, begun := w.trail.At()
	w.mu.Unlock()
	if !begun && !w.group.spec.Initial {
		from = w.run.engine.Revision()
	}
	watch, err := w.start(ctx, from, !begun)
	for errors.Is(err, engine.ErrExpired) && from > 0 {
		if from, err = w.relist(ctx, from); err == nil {
			watch, err = w.start(ctx, from, false)
		}
	}
	return watch, err
}

// start opens a watch after from. Fresh is one that begins a trail.
func (w *watcher) start(ctx context.Context, from engine.Revision, fresh bool) (*engine.Watch[content.Item], error) {
	spec := w.group.spec
	opts := engine.WatchOptions{
		Labels: w.sel.Labels, Fields: w.sel.Fields, Prefix: w.sel.Prefix, Key: w.sel.Key,
		From: from, Policy: w.run.policies[spec.Policy], Buffer: spec.Buffer,
	}
	initial := fresh && spec.Initial
	if initial {
		opts.From, opts.InitialState, opts.Bookmarks = 0, true, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if initial {
		w.trail.ExpectState()
	}
	watch, err := w.connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	if fresh && !initial {
		w.trail.Begin(from)
	}
	w.current = watch
	w.watch.Store(watch)
	return watch, nil
}

// relist lists what the watcher selects, as one that has to start over does. The
// stretch that it has seen ends, another begins at the list's revision.
func (w *watcher) relist(ctx context.Context, known engine.Revision) (engine.Revision, error) {
	w.relists++
	opts := engine.ListOptions{Labels: w.sel.Labels, Fields: w.sel.Fields, Prefix: w.sel.Prefix, Key: w.sel.Key, Read: engine.NotOlderThan(known)}
	list, err := w.run.engine.List(ctx, opts)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trail.List(list)
	return list.Revision, nil
}

// leave stops a watch and notes where it was.
func (w *watcher) leave(watch *engine.Watch[content.Item]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = nil
	w.watch.Store(nil)
	w.kick.Store(nil)
	if watch.Err() == nil {
		w.trail.Stop(watch.Revision())
	}
	watch.Stop()
}
