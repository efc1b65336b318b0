package judge

import "github.com/watchmill/watchmill/engine"

// Figures is what an engine says of its watches.
type Figures struct {
	// Living is how many there are.
	Living int64
	// SlowConsumers, Deadlines, Panics and Expired are how many ended for that.
	// Expired may count more: watches that the window had overrun, but which
	// ended for something else before their consumer got there.
	SlowConsumers, Deadlines, Panics, Expired uint64
}

// JudgeFigures compares an engine's figures with the ends of all its watches,
// nil for those that live.
func JudgeFigures(f Figures, ends []error) error {
	var living int64
	count := map[error]uint64{}
	for _, end := range ends {
		if end == nil {
			living++
		} else {
			count[Reason(end)]++
		}
	}
	gone := uint64(len(ends)) - uint64(living)
	switch {
	case f.Living != living:
		return Failed(Conserved, "", "the engine counts %d watches, %d live", f.Living, living)
	case f.SlowConsumers != count[engine.ErrSlowConsumer]:
		return Failed(Conserved, "", "the engine counts %d slow consumers, %d were told", f.SlowConsumers, count[engine.ErrSlowConsumer])
	case f.Deadlines != count[engine.ErrDeadline]:
		return Failed(Conserved, "", "the engine counts %d deadlines, %d were told", f.Deadlines, count[engine.ErrDeadline])
	case f.Panics != count[engine.ErrHandlerPanic]:
		return Failed(Conserved, "", "the engine counts %d panics, %d were told", f.Panics, count[engine.ErrHandlerPanic])
	case f.Expired < count[engine.ErrExpired] || f.Expired > gone:
		return Failed(Conserved, "", "the engine counts %d expired, %d were told, %d ended", f.Expired, count[engine.ErrExpired], gone)
	}
	return nil
}

// JudgeLeft says what an engine has left behind after its Close.
func JudgeLeft(actors, timers int, names []string) error {
	if actors != 0 || timers != 0 {
		return Failed(NothingLeft, "", "%d actors and %d timers are left: %v", actors, timers, names)
	}
	return nil
}
