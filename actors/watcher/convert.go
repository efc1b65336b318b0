package watcher

import (
	"slices"

	"github.com/watchmill/watchmill/store"
)

// Convert converts an event of the log to the event that a watcher with the filter
// sees, or reports false if it sees none, depending on whether the object matched
// before and matches after:
//
//	before  after   the watcher sees
//	no      yes     Added
//	yes     yes     Modified
//	yes     no      Deleted: the last matching state, at this event's revision
//	no      no      nothing
//
// Bookmarks always pass; an emitted value passes if it matches. Marks are kept.
// Only a change that takes an object out of the selection allocates, for the
// copy of the state that it left, and runs user code: SetRevision, whose panic
// [store.Schema.Gone] contains.
func Convert(schema *store.Schema, f *store.Filter, ev store.Event) (store.Event, bool) {
	if ev.Type == store.Bookmark || f.Everything() {
		return ev, true
	}
	if ev.Type == store.Added || ev.Type == store.Modified {
		return convertChange(schema, f, ev)
	}
	// The object of a deletion has the attributes of the last state.
	return ev, store.Matches(f, ev.Object)
}

// convertChange converts an Added or Modified event.
func convertChange(schema *store.Schema, f *store.Filter, ev store.Event) (store.Event, bool) {
	after := store.Matches(f, ev.Object)
	before := after
	if !store.Alike(ev.Prev, ev.Object) {
		before = store.Matches(f, ev.Prev)
	}
	switch {
	case after && before:
		ev.Type = store.Modified
	case after:
		ev.Type, ev.Prev = store.Added, nil
	case before:
		ev.Type, ev.Object = store.Deleted, lastMatching(schema, ev)
	}
	return ev, before || after
}

// lastMatching returns the last matching state as the object of the Deleted event.
func lastMatching(schema *store.Schema, ev store.Event) *store.Object {
	at := ev.Prev.Written
	if ev.Object != nil {
		at = ev.Object.Written
	}
	return schema.Gone(ev.Prev, ev.Revision, at)
}

// ConvertBatch converts a slice of events. If the result is a contiguous, unchanged
// part of the input, it returns that subslice and allocates nothing; so events must
// not be changed afterwards. The result is clipped.
func ConvertBatch(schema *store.Schema, f *store.Filter, events []store.Event) []store.Event {
	if f.Everything() {
		return slices.Clip(events)
	}
	start, shared := 0, true // while shared, out is events[start:][:len(out)]
	var out []store.Event
	for i, ev := range events {
		seen, ok := Convert(schema, f, ev)
		if !ok {
			continue
		}
		if len(out) == 0 {
			start = i
		}
		shared = shared && seen == ev && start+len(out) == i
		if shared {
			out = events[start : i+1 : i+1]
		} else {
			out = append(out, seen)
		}
	}
	return out
}
