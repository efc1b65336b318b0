package world

import (
	"context"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// eventSize is more bytes than an event of a small value takes in the window.
const eventSize = 512

// judgeWindow fails the world unless the engine keeps the events that the setup's limits require, and
// no more than they allow. An event may leave the window when it is old or when there are too many, or too
// many bytes, after it, together with those of its chunk. The window begins at the first list of the engine, or with
// the history that storage keeps, and again when storage has gone back.
func (w *World[T]) judgeWindow() {
	s, limits := w.engine.Stats(), w.scenario.Setup.Window.WithDefaults()
	if most := max(limits.MaxEvents, limits.MinEvents+limits.ChunkSize); s.WindowEvents > most {
		w.fail(judge.Failed(judge.Kept, "", "the window has %d events, the most are %d", s.WindowEvents, most))
	}
	if s.WindowBytes > limits.MaxBytes && s.WindowEvents-limits.ChunkSize > limits.MinEvents { // which may be the most that an int holds
		w.fail(judge.Failed(judge.Kept, "", "the window has %d bytes, the most are %d", s.WindowBytes, limits.MaxBytes))
	}
	if w.rewinding { // it may be a window of another history
		return
	}
	floor := s.WindowFloor
	switch {
	case w.windowBegan == 0 && floor > 0:
		w.windowBegan = max(w.beginsAt(floor), w.discarded)
	case w.discarded > 0 && floor >= w.discarded:
		w.windowBegan = floor
	}
	if s.Revision >= w.discarded && floor >= w.discarded {
		w.discarded = 0
	}
	if floor <= max(w.windowBegan, judge.First) {
		return
	}
	chunk := limits.MaxBytes/8 + eventSize*int64(limits.ChunkSize+1)
	full := s.WindowEvents+limits.ChunkSize > limits.MaxEvents || s.WindowBytes+chunk > limits.MaxBytes
	switch old := w.storage.ClockJumped || w.storage.Age(floor) >= limits.MinAge; {
	case s.WindowEvents < limits.MinEvents:
		w.fail(judge.Failed(judge.Kept, "", "the window has %d events, the least are %d, and it has dropped those up to %d", s.WindowEvents, limits.MinEvents, floor))
	case !old && !full:
		w.fail(judge.Failed(judge.Kept, "", "the window has %d events and has dropped those up to %d, which is of %v ago", s.WindowEvents, floor, w.storage.Age(floor)))
	}
}

// beginsAt returns where the window must have begun that begins at floor when the engine has just listed: with the
// history that storage has kept, if neither a fault nor the loss of some of that can have kept the engine from it.
func (w *World[T]) beginsAt(floor store.Revision) store.Revision {
	if w.scenario.Setup.KeepsHistory && !w.storage.Disturbed && w.storage.Floor() == w.keptFrom {
		return min(floor, max(w.keptFrom, judge.First))
	}
	return floor
}

// discardErrors are those with which the contract allows a compaction to fail.
var discardErrors = []error{engine.ErrNotReady, engine.ErrIdle, storage.ErrOutage}

// discard has the engine of the step forget history. Even a call that has failed may have had an effect.
func (w *World[T]) discard(ctx context.Context, s script.Step) {
	by, rev := w.engineOfStep(s), w.storage.Back(s.N)
	r := w.readBy(by, judge.Read[T]{Name: "discard", Oldest: rev, Newest: rev})
	err := by.Compact(ctx, rev)
	w.trace.Result(rev, err)
	floor := w.engine.Stats().WindowFloor
	if by == w.engine && !(w.rewinding && w.windowBegan > 0) { // otherwise endRewind looks where the window begins
		w.windowDiscarded(rev, floor, err)
	}
	switch {
	case err != nil:
		w.judgeReadError(ctx, r, err, discardErrors)
	case by == w.engine && !w.rewinding && floor < rev && w.engine.Revision() >= rev:
		w.fail(judge.Failed(judge.Kept, "", "the window starts at %d, although everything before %d was to be discarded", floor, rev))
	case w.storage.Floor() < rev:
		w.fail(judge.Failed(judge.Kept, "storage", "it starts at %d, although everything before %d was to be discarded", w.storage.Floor(), rev))
	}
}

// windowDiscarded records that history up to rev was to be discarded. The window, which begins at
// floor, may then begin at rev or, if the engine has not received the change after rev but listed its
// effect, at floor.
func (w *World[T]) windowDiscarded(rev, floor store.Revision, err error) {
	if late := w.engine.Revision() < rev; late || err != nil {
		w.discarded = max(w.discarded, rev)
	}
	if w.windowBegan == 0 {
		return
	}
	w.windowBegan = max(w.windowBegan, rev)
	if !w.history().Received(rev + 1) {
		w.windowBegan = max(w.windowBegan, floor)
	}
}
