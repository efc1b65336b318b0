package watcher

import (
	"slices"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
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
	state *store.TreeView
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

// next returns the next batch of the state, or the bookmark.
func (i *initialEvents) next(f *store.Filter) []store.Event {
	if i.state != nil {
		if events := i.nextState(f); len(events) > 0 {
			if i.count != nil {
				i.count.Add(uint64(len(events)))
			}
			return events
		}
	}
	if i.bookmark {
		i.bookmark = false
		return []store.Event{{Type: store.Bookmark, Marks: store.InitialEnd, Revision: i.revision}}
	}
	return nil
}

// nextState returns the next batch of the state as Added events, and drops the state
// at its end.
func (i *initialEvents) nextState(f *store.Filter) []store.Event {
	events := i.room[:0]
	for o := range store.Select(i.state, f, i.after) {
		if len(events) == smallState {
			events = slices.Grow(events, min(batchSize, i.state.Len())-smallState)
		}
		events = append(events, store.Event{Type: store.Added, Marks: store.Initial, Revision: o.Revision, Object: o})
		if len(events) == batchSize {
			i.after = o.Key
			if i.reuse {
				i.room = events
			}
			return events
		}
	}
	i.state = nil
	return events
}

// done reports whether everything was delivered.
func (i *initialEvents) done() bool { return i == nil || i.state == nil && !i.bookmark }

// owesBookmark reports whether the InitialEnd bookmark was not delivered yet.
func (i *initialEvents) owesBookmark() bool { return i != nil && i.bookmark }
