package place

import (
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// Place is where a watch is in the history. One goroutine at a time may use it.
type Place struct {
	// Prefix is that of the keys that the watch covers.
	Prefix string
	// At is the next event to read.
	At window.Seq
	// Through is the revision up to which everything was read.
	Through store.Revision
}

// Read returns the next events of history that the watch covers, at most limit, and moves
// the place after them. Without a prefix they are not copied, but end with their chunk of
// the window; with one they are looked for up to the end of history.
func (p *Place) Read(history window.View, limit int) []store.Event {
	if p.Prefix == "" {
		events, _ := history.Read(p.At)
		n := min(len(events), limit)
		p.advance(history, n)
		return events[:n:n]
	}
	var found []store.Event
	for p.At < history.Next() && len(found) < limit {
		found = p.filter(history, found, limit)
	}
	return found
}

// filter appends to found the events of one chunk that the watch covers.
func (p *Place) filter(history window.View, found []store.Event, limit int) []store.Event {
	chunk, _ := history.Read(p.At)
	for i, ev := range chunk {
		if !store.HasPrefix(ev.Key(), p.Prefix) {
			continue
		}
		if found = append(found, ev); len(found) == limit {
			p.advance(history, i+1)
			return found
		}
	}
	p.advance(history, len(chunk))
	return found
}

// advance moves the place over n events.
func (p *Place) advance(history window.View, n int) {
	p.At += window.Seq(n)
	p.Through = history.RevisionAt(p.At)
}
