package world

import "github.com/watchmill/watchmill/sim/judge"

// eventSize is more bytes than an event of a small value takes in the window.
const eventSize = 512

// judgeWindow fails the world unless the engine keeps the events that the setup's limits require, and
// no more than they allow. An event may leave the window when it is old or when there are too many, or too
// many bytes, after it, together with those of its chunk. The window begins at the first list of the engine, and again
// when storage has gone back.
func (w *World[T]) judgeWindow() {
	s, limits := w.engine.Stats(), w.scenario.Setup.Window.WithDefaults()
	if most := max(limits.MaxEvents, limits.MinEvents+limits.ChunkSize); s.WindowEvents > most {
		w.fail(judge.Failed(judge.Kept, "", "the window has %d events, the most are %d", s.WindowEvents, most))
	}
	if s.WindowBytes > limits.MaxBytes && s.WindowEvents > limits.MinEvents+limits.ChunkSize {
		w.fail(judge.Failed(judge.Kept, "", "the window has %d bytes, the most are %d", s.WindowBytes, limits.MaxBytes))
	}
	floor := s.WindowFloor
	if w.windowBegan == 0 {
		w.windowBegan = floor
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
