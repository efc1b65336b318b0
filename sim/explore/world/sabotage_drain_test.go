package world

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
)

// closeAtDrain closes an engine when it is to be drained if that is one of such engines, and says that nothing was
// dropped.
func closeAtDrain(such func(*World[Thing], *engine.Engine[Thing]) bool) func(*once) seams[Thing] {
	return func(*once) seams[Thing] {
		return seams[Thing]{drain: func(ctx context.Context, w *World[Thing], e *engine.Engine[Thing]) error {
			if such(w, e) {
				return e.Close()
			}
			return e.Drain(ctx)
		}}
	}
}

func isCached(w *World[Thing], e *engine.Engine[Thing]) bool { return e == w.engine }

func isUncached(w *World[Thing], e *engine.Engine[Thing]) bool { return e == w.uncached }

// closeOnLoops closes the engine when it is to be drained once all other consumers have read, if there are still loops
// in the middle of a batch.
func closeOnLoops(*once) seams[Thing] {
	return seams[Thing]{drain: func(ctx context.Context, w *World[Thing], e *engine.Engine[Thing]) error {
		for _, r := range w.started {
			if r.loop == nil {
				w.take(r, takeAll)
			}
		}
		w.sched.Settle()
		inLoop := func(i engine.WatchInfo) bool {
			return i.Lag > 0 && slices.ContainsFunc(w.started, func(r *watch[Thing]) bool { return r.Name == i.Name && r.loop != nil })
		}
		if e == w.engine && slices.ContainsFunc(e.Watches(), inLoop) {
			return e.Close()
		}
		return e.Drain(ctx)
	}}
}

// dropInDrain withholds the notifications from the handler of an informer that come while the engine is drained.
func dropInDrain(w *World[Thing], n informer.Notification[Thing]) []informer.Notification[Thing] {
	if w.closing {
		return nil
	}
	return []informer.Notification[Thing]{n}
}

// acceptInDrain has a drain wait for what was acknowledged before, without refusing writes.
func acceptInDrain(*once) seams[Thing] {
	return seams[Thing]{drain: func(ctx context.Context, w *World[Thing], e *engine.Engine[Thing]) error {
		acknowledged := w.newest()
		behind := func(i engine.WatchInfo) bool { return i.Revision < acknowledged }
		for e.Stats().Revision < acknowledged || slices.ContainsFunc(e.Watches(), behind) {
			if w.sched.Run() == 0 {
				break
			}
		}
		return e.Close()
	}}
}

// spoilDrainError changes the error of drains: of the first of each engine, whose context has ended, or of those after it.
func spoilDrainError(again bool, spoil func(error) error) func(*once) seams[Thing] {
	return func(*once) seams[Thing] {
		drained := map[*engine.Engine[Thing]]bool{}
		return seams[Thing]{drain: func(ctx context.Context, _ *World[Thing], e *engine.Engine[Thing]) error {
			err, is := e.Drain(ctx), drained[e]
			if drained[e] = true; err != nil && is == again {
				return spoil(err)
			}
			return err
		}}
	}
}

// hideError says that a drain has delivered everything.
func hideError(error) error { return nil }

// nameNone names no watches.
func nameNone(err error) error {
	return &engine.UndeliveredError{Cause: err}
}
