package world

import "github.com/watchmill/watchmill/sim/judge"

// judgeWindow fails the world unless the engine keeps the events that the setup's limits require, and
// no more than they allow. An event may leave the window when it is old or when there are too many after
// it, together with those of its chunk. The window begins at the first list of the engine, and again
// when storage has gone back.
func (w *World[T]) judgeWindow() {
	s, limits := w.engine.Stats(), w.scenario.Setup.Window.WithDefaults()
	if most := max(limits.MaxEvents, limits.MinEvents+limits.ChunkSize); s.WindowEvents > most {
		w.fail(judge.Failed(judge.Kept, "", "the window has %d events, the most are %d", s.WindowEvents, most))
	}
	floor := s.WindowFloor
	if w.windowBegan == 0 {
		w.windowBegan = floor
	}
	if floor <= max(w.windowBegan, judge.First) {
		return
	}
	full := s.WindowEvents+limits.ChunkSize > limits.MaxEvents
	switch old := w.storage.ClockJumped || w.storage.Age(floor) >= limits.MinAge; {
	case s.WindowEvents < limits.MinEvents:
		w.fail(judge.Failed(judge.Kept, "", "the window has %d events, the least are %d, and it has dropped those up to %d", s.WindowEvents, limits.MinEvents, floor))
	case !old && !full:
		w.fail(judge.Failed(judge.Kept, "", "the window has %d events and has dropped those up to %d, which is of %v ago", s.WindowEvents, floor, w.storage.Age(floor)))
	}
}
