package mishap

import (
	"slices"

	"github.com/watchmill/watchmill/store/backend"
)

// Mishaps is what is to happen to the next batches that have events, each to
// one. It is not safe for concurrent use.
type Mishaps struct {
	// Lose: a batch lacks an event. Repeat: a batch has one twice. If both are
	// set, Lose comes first.
	Lose, Repeat bool
}

// Spoil returns the batch with the next of the mishaps, which is then over; the
// event in the middle is struck. A batch without events is returned as it is, and
// nothing is over. The batch given is not changed.
func Spoil(m *Mishaps, batch backend.Batch) backend.Batch {
	middle := len(batch.Events) / 2
	switch {
	case len(batch.Events) == 0:
	case m.Lose:
		m.Lose = false
		batch.Events = slices.Delete(slices.Clone(batch.Events), middle, middle+1)
	case m.Repeat:
		m.Repeat = false
		batch.Events = slices.Insert(slices.Clone(batch.Events), middle, batch.Events[middle])
	}
	return batch
}
