package controller

import (
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
)

// none is the type of the root's only message, the first one, which shows whether the
// root runs.
type none struct{}

// root is the actor above the workers.
type root struct{ core *core }

// Started starts the workers.
func (r *root) Started(ctx *actors.Context) {
	for i := range r.core.workers {
		r.spawn(ctx, i)
	}
}

// spawn starts a worker, which checks the queue at once.
func (r *root) spawn(ctx *actors.Context, place int) {
	w := &worker{core: r.core, place: place}
	if actors.SpawnWake(ctx, w, &w.box, ctx.System().Blocking()) == nil {
		r.core.workers[place].Store(w)
		w.box.Wake()
	}
}

// Receive has nothing to do.
func (r *root) Receive(*actors.Context, none) {}

// ChildStopped replaces a worker whose goroutine was ended by Reconcile, as t.FailNow
// does.
func (r *root) ChildStopped(ctx *actors.Context, id actors.ID) {
	for i := range r.core.workers {
		if w := r.core.workers[i].Load(); w != nil && w.box.ID() == id && r.core.life.Err() == nil {
			r.spawn(ctx, i)
		}
	}
}

// Stopping ends the controller if its host was closed.
func (r *root) Stopping(*actors.Context) {
	r.core.cancel(errHostClosed) // the first cause stays: after Close it is ErrClosed
	r.core.queue.ShutDown()
}

// Stopped tells Close that all workers have stopped.
func (r *root) Stopped(ctx *actors.Context) {
	r.Stopping(ctx) // which was not called if the root never started
	r.core.actorsGone()
}

// worker is an actor that reconciles one key at a time.
type worker struct {
	core  *core
	place int
	box   actors.WakeBox
	// busy: the worker will check the queue after its call.
	busy atomic.Bool
}

// Name is the worker's name in failures.
func (w *worker) Name() string { return w.core.cfg.name }

// Woken reconciles the next key.
func (w *worker) Woken(*actors.Context) (again bool) {
	if w.core.life.Err() != nil || !w.core.cfg.synced() {
		return false
	}
	key, ok := w.core.queue.TryGet()
	if !ok {
		w.core.rest()
		return false
	}
	w.busy.Store(true)
	defer w.busy.Store(false)
	if w.core.queue.Len() > 0 {
		w.core.wakeIdle()
	}
	w.core.reconcile(key)
	return true
}
