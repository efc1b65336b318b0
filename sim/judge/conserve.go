package judge

import (
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// conserved does the sum of a record: what was published and is selected, up to
// where the watch stands, is what was delivered and what a mark tells as lost.
func (j *judge[T]) conserved() error {
	if j.silent || j.Options.Policy == engine.Conflate {
		return nil // it may leave out anything
	}
	published, delivered, at := 0, 0, j.begun
	pass := func(through store.Revision) {
		for ; at < through; at++ {
			if _, _, shown := j.change(at + 1).seen(j.Selects); shown && j.Witnessed(at+1) {
				published++
			}
		}
	}
	for _, ev := range j.Events {
		switch {
		case ev.Type == store.Bookmark || ev.Is(store.Initial):
		case ev.Marks != 0:
			pass(ev.Revision)
			published = delivered // it stands for what it follows
		default:
			pass(ev.Revision)
			delivered++
		}
	}
	pass(min(j.position, j.Newest()))
	if published != delivered {
		return Failed(Conserved, j.Name, "%d published, %d delivered, nothing told as lost", published, delivered)
	}
	return nil
}

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
