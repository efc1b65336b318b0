package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// The context of a drain may end before that is done. The engine is closed all the same, and the error names each watch
// that has not delivered everything. One that it does not name has everything that had arrived from storage:
//
//	drain ──▶ watches deliver ──▶ all have ──▶ nil
//	              │ the context ends
//	              └─▶ close ──▶ UndeliveredError: names, and where each consumer stood
//	                              └─▶ drained again: the same; or closed: nil

// drain is one drain of an engine.
type drain[T any] struct {
	engine *engine.Engine[T]
	// open are the watches that have not ended before.
	open []*watch[T]
	// caller is the context.
	caller *execution.Caller
	// impatient: the context ends; early: it has before the call.
	impatient, early bool
	// returned: the call has. cut: the context had ended before.
	returned, cut bool
	// running are those of open that had not ended when the context did, with how many events their consumers had, and
	// reached the revision of the engine then.
	running map[*watch[T]]int
	reached store.Revision
	// draw decides what follows.
	draw *rand.Rand
}

// newDrain returns the drain of an engine with these watches. It has not begun.
func newDrain[T any](w *World[T], e *engine.Engine[T], open []*watch[T]) *drain[T] {
	d := &drain[T]{engine: e, open: open, caller: execution.NewCaller(w.sched), impatient: w.scenario.Impatient, running: map[*watch[T]]int{}}
	d.draw = rand.New(rand.NewPCG(w.scenario.Seed, 13))
	if d.impatient && d.draw.IntN(4) == 0 {
		d.early = true
		d.end(w)
	}
	return d
}

// end ends the context, if the caller is impatient and the call has not returned.
func (d *drain[T]) end(w *World[T]) {
	if !d.impatient || d.returned || d.cut {
		return
	}
	d.cut, d.reached = true, d.engine.Revision()
	for _, r := range d.open {
		if r.handle.Err() == nil {
			d.running[r] = len(r.Events)
		}
	}
	d.caller.Cancel()
}

// call drains the engine.
func (d *drain[T]) call(w *World[T]) error {
	err := w.drainOnce(d.caller, d.engine)
	d.returned = true
	w.trace.Result(d.engine.Revision(), err)
	return err
}

// drainOnce drains an engine, through the seam if there is one.
func (w *World[T]) drainOnce(ctx context.Context, e *engine.Engine[T]) error {
	if w.seams.drain != nil {
		return w.seams.drain(ctx, w, e)
	}
	return e.Drain(ctx)
}

// judgeCutDrain judges a drain that has failed with err, since its context had ended, and what comes after it. It returns
// the watches that must have had everything nevertheless: those that had ended before.
func (w *World[T]) judgeCutDrain(d *drain[T], err error) (served []*watch[T]) {
	var undelivered *engine.UndeliveredError
	if !errors.As(err, &undelivered) || !errors.Is(err, engine.ErrUndelivered) || !errors.Is(err, execution.ErrCanceled) {
		w.fail(judge.Failed(judge.Refusals, "drain", "its context has ended, and it returned: %v", err))
		return nil
	}
	for _, r := range d.open {
		had, running := d.running[r]
		if !running {
			served = append(served, r)
			continue
		}
		named := slices.IndexFunc(undelivered.Watches, func(u engine.Undelivered) bool { return u.Name == r.Name })
		if r.history != w.history() || r.ambiguous || !w.hasOwnName(r) {
			continue
		}
		if named < 0 {
			w.requireReached(d, r)
		} else {
			w.judgeUndelivered(r, had, undelivered.Watches[named])
		}
	}
	if told := d.engine.Stats().Undelivered; !slices.Equal(told, undelivered.Watches) {
		w.fail(judge.Failed(judge.Conserved, "drain", "it has not delivered %v, and the figures have %v", undelivered.Watches, told))
	}
	w.endAgain(d, undelivered)
	return served
}

// hasOwnName reports whether no other watch has the name. Scenarios that are written by hand may have several of one name.
func (w *World[T]) hasOwnName(r *watch[T]) bool {
	return !slices.ContainsFunc(w.started, func(other *watch[T]) bool { return other != r && other.Name == r.Name })
}

// requireReached notes that a watch, which the error of a drain does not name, has everything that had arrived from storage.
func (w *World[T]) requireReached(d *drain[T], r *watch[T]) {
	if !r.Uncached && w.history().Received(d.reached) && errors.Is(r.handle.Err(), engine.ErrEngineClosed) {
		r.Through = d.reached
	}
}

// judgeUndelivered judges what the error of a drain says of a watch, whose consumer had so many events when the context
// ended; others may have come while the engine was closed. There must be something that it did not have, perhaps of what
// the watch does not select, and it must be able to resume where the error says that it stood.
func (w *World[T]) judgeUndelivered(r *watch[T], had int, u engine.Undelivered) {
	for had < len(r.Events) && w.history().Shown(r.Events[had].Revision) <= u.Revision {
		had++ // before the engine looked
	}
	then := r.Record
	then.Selects, then.Events = everything[T], then.Events[:had]
	if !u.Initial && w.history().Lacks(&then, w.newest()) == 0 {
		w.fail(judge.Failed(judge.Conserved, r.Name, "it had everything, and is said not to: %v", u))
	}
	at := len(r.Claims)
	for at > 0 && r.Claims[at-1].Events > had {
		at--
	}
	r.Claims = slices.Insert(r.Claims, at, judge.Claim{Events: had, Revision: u.Revision})
}

// endAgain drains or closes an engine after a drain that has failed. It is closed, and another drain must say the same of
// the watches.
func (w *World[T]) endAgain(d *drain[T], first *engine.UndeliveredError) {
	if d.draw.IntN(2) == 0 {
		if err := d.engine.Close(); err != nil {
			w.fail(judge.Failed(judge.NothingLeft, "drain", "closed after it: %v", err))
		}
		return
	}
	var again *engine.UndeliveredError
	err := w.drainOnce(context.Background(), d.engine)
	w.trace.Result(d.engine.Revision(), err)
	if !errors.As(err, &again) || !slices.Equal(again.Watches, first.Watches) {
		w.fail(judge.Failed(judge.Conserved, "drain", "the first returned: %v; another: %v", first, err))
	}
}
