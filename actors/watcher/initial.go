package watcher

import "github.com/watchmill/watchmill/store"

// batchSize is how many events of a state, or of a difference, are handed out at
// once: a chunk's worth.
const batchSize = 256

// initialEvents is the state that a watch starts with, as far as it has not been
// handed out.
type initialEvents struct {
	// state is handed out in key order, after the key `after`; nil at its end.
	state *store.TreeView
	after string
	// revision is what the state is complete at.
	revision store.Revision
	// bookmark: an InitialEnd bookmark at revision closes the state.
	bookmark bool
}

// next returns the next stretch of the state, or the bookmark.
func (i *initialEvents) next(f *store.Filter) []store.Event {
	if i.state != nil {
		if events := i.nextState(f); len(events) > 0 {
			return events
		}
	}
	if i.bookmark {
		i.bookmark = false
		return []store.Event{{Type: store.Bookmark, Marks: store.InitialEnd, Revision: i.revision}}
	}
	return nil
}

// nextState returns the next stretch of the state as Added events, and lets go
// of the state at its end.
func (i *initialEvents) nextState(f *store.Filter) []store.Event {
	var events []store.Event
	for o := range store.Select(i.state, f, i.after) {
		events = append(events, store.Event{Type: store.Added, Marks: store.Initial, Revision: o.Revision, Object: o})
		if len(events) == batchSize {
			i.after = o.Key
			return events
		}
	}
	i.state = nil
	return events
}

// done reports whether nothing is left to hand out.
func (i *initialEvents) done() bool { return i == nil || i.state == nil && !i.bookmark }

// owesBookmark reports whether the bookmark that closes the state is still to
// come.
func (i *initialEvents) owesBookmark() bool { return i != nil && i.bookmark }
