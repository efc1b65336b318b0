package watcher

import (
	"sort"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// backlog is what a watch reads before the window: events that have left it, and
// how the watch continues after them.
type backlog struct {
	// events are the kept events, in slices shared with the window and with other
	// watches; size is their number.
	events [][]store.Event
	size   int
	// base is the state at the cursor's position, which a Conflate watch is
	// conflated from. It keeps that state alive.
	base *tree.View
	// first is where the window starts that no longer has the watch's position. A
	// consumer may read on before that window is published.
	first window.Seq
	// end, if not nil, ends the watch when the events have been read.
	end error
}

// keep adds a slice of events.
func (b *backlog) keep(events []store.Event) {
	if len(events) > 0 {
		b.events = append(b.events, events)
		b.size += len(events)
	}
}

// next returns the next events, up to batchSize of them or one revision.
func (b *backlog) next() []store.Event {
	if len(b.events) == 0 {
		return nil
	}
	head := b.events[0]
	n := wholeRevisions(head, batchSize)
	if n < len(head) {
		b.events[0] = head[n:]
	} else {
		b.events[0] = nil
		b.events = b.events[1:]
	}
	b.size -= n
	return head[:n:n]
}

// last returns the revision of the last event, or the given one if there is
// none.
func (b *backlog) last(none store.Revision) store.Revision {
	if n := len(b.events); n > 0 {
		return b.events[n-1][len(b.events[n-1])-1].Revision
	}
	return none
}

// decided reports whether the watch will be conflated or ended after the backlog.
func (b *backlog) decided() bool { return b != nil && (b.base != nil || b.end != nil) }

// wholeRevisions returns how many of the events, at most limit, can be delivered
// without splitting a revision. If the first revision alone has more than limit, it
// is all of it. Initial events have the revisions of their objects, which are
// ignored here.
func wholeRevisions(events []store.Event, limit int) int {
	switch {
	case limit >= len(events):
		return len(events)
	case events[0].Is(store.Initial):
		return limit
	}
	for n := limit; n > 0; n-- {
		if events[n-1].Revision != events[n].Revision {
			return n
		}
	}
	first := events[0].Revision
	return sort.Search(len(events), func(i int) bool { return events[i].Revision > first })
}
