package watcher

import (
	"slices"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// batchSize is how many events of a state, or of a difference, are delivered at
// once: the size of a chunk.
const batchSize = 256

// smallState is how many events a batch has when room is made for the rest of it: a
// state that a selector leaves few objects of costs no more than these, and a large one
// does not grow its batch step by step.
const smallState = 8

// initialEvents is the part of a watch's initial state that has not been delivered.
type initialEvents struct {
	// state is delivered in key order, after the key `after`; nil at its end.
	state *tree.View
	after string
	// revision is that of the state.
	revision store.Revision
	// bookmark: an InitialEnd bookmark at revision ends the state.
	bookmark bool
	// count counts the events of the state; nil counts none.
	count *atomic.Uint64
	// reuse: the consumer is done with a batch when it asks for the next, as a handler is
	// and a caller of Next is not. Then all batches share one memory, room, which stays in
	// the processor's cache.
	reuse bool
	room  []store.Event
}

// next returns the next batch of the state, or the bookmark. Its error is [errUnfinished],
// without events.
func (i *initialEvents) next(f *store.Filter) ([]store.Event, error) {
	if i.state != nil {
		events, err := i.nextState(f)
		if len(events) > 0 && i.count != nil {
			i.count.Add(uint64(len(events)))
		}
		if len(events) > 0 || err != nil {
			return events, err
		}
	}
	if i.bookmark {
		i.bookmark = false
		return []store.Event{{Type: store.Bookmark, Marks: store.InitialEnd, Revision: i.revision}}, nil
	}
	return nil, nil
}

// nextState returns the next batch of the state as Added events, and drops the state
// at its end.
func (i *initialEvents) nextState(f *store.Filter) ([]store.Event, error) {
	from := tree.CandidatesOf(i.state, f, i.after)
	all, most := from.Match, min(batchSize, i.state.Len())
	batch := struct { // one allocation, since the loop's body is a function
		events   []store.Event
		examined int
		last     *store.Object // nil at the state's end
	}{events: i.room[:0]}
	for o := range from.Objects {
		batch.examined++
		if all || store.Matches(f, o) {
			if len(batch.events) == smallState {
				batch.events = slices.Grow(batch.events, most-smallState)
			}
			batch.events = append(batch.events, store.Event{Type: store.Added, Marks: store.Initial, Revision: o.Revision, Object: o})
		}
		if len(batch.events) == batchSize || batch.examined == stepSize {
			batch.last = o
			break
		}
	}
	if batch.last == nil {
		i.state = nil
		return batch.events, nil
	}
	i.after = batch.last.Key
	if i.reuse {
		i.room = batch.events
	}
	if len(batch.events) == 0 {
		return nil, errUnfinished
	}
	return batch.events, nil
}

// done reports whether everything was delivered.
func (i *initialEvents) done() bool { return i == nil || i.state == nil && !i.bookmark }

// owesBookmark reports whether the InitialEnd bookmark was not delivered yet.
func (i *initialEvents) owesBookmark() bool { return i != nil && i.bookmark }
