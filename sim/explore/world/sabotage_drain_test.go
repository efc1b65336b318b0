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
		return seams[Thing]{drain: func(w *World[Thing], e *engine.Engine[Thing]) error {
			if such(w, e) {
				return e.Close()
			}
			return e.Drain(context.Background())
		}}
	}
}

func isCached(w *World[Thing], e *engine.Engine[Thing]) bool { return e == w.engine }

func isUncached(w *World[Thing], e *engine.Engine[Thing]) bool { return e == w.uncached }

// closeOnLoops closes the engine when it is to be drained once all other consumers have read, if there are still loops
// in the middle of a batch.
func closeOnLoops(*once) seams[Thing] {
	return seams[Thing]{drain: func(w *World[Thing], e *engine.Engine[Thing]) error {
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
		return e.Drain(context.Background())
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
	return seams[Thing]{drain: func(w *World[Thing], e *engine.Engine[Thing]) error {
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
