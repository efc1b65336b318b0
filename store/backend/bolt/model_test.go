package bolt_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/watchmill/watchmill/store"
)

// contents is what a backend must show: a model that is obviously right.
type contents struct {
	// oldest is the oldest revision that can be read, revision the newest.
	oldest, revision store.Revision
	objects          map[string]*store.Object
	// events are all that can be watched, and more. states has the objects at each
	// revision, in the order of their keys.
	events []store.Event
	states map[store.Revision][]*store.Object
}

func newContents(first store.Revision) *contents {
	c := &contents{objects: map[string]*store.Object{}, states: map[store.Revision][]*store.Object{}}
	c.begin(first)
	return c
}

// begin makes the state that of a revision without history.
func (c *contents) begin(at store.Revision) {
	c.oldest, c.revision, c.events = at, at, nil
	c.states[at] = c.sorted()
}

func (c *contents) sorted() []*store.Object {
	return slices.SortedFunc(maps.Values(c.objects), func(a, b *store.Object) int { return strings.Compare(a.Key, b.Key) })
}

// happen records a change at some time, and returns its object.
func (c *contents) happen(kind store.EventType, o *store.Object, at time.Time) *store.Object {
	c.revision++
	o.Revision, o.Written = c.revision, at
	prev := c.objects[o.Key]
	switch kind {
	case store.Emitted:
		o.Created, prev = c.revision, nil
	case store.Deleted:
		delete(c.objects, o.Key)
	default:
		c.objects[o.Key] = o
	}
	c.events = append(c.events, store.Event{Type: kind, Revision: c.revision, Object: o, Prev: prev})
	c.states[c.revision] = c.sorted()
	return o
}

func (c *contents) put(key, text string, at, expires time.Time) *store.Object {
	o := draft(key, text)
	o.Created, o.Expires = c.revision+1, expires
	if prev := c.objects[key]; prev != nil {
		o.Created = prev.Created
		return c.happen(store.Modified, o, at)
	}
	return c.happen(store.Added, o, at)
}

func (c *contents) remove(key string, at time.Time) *store.Object {
	last := c.objects[key]
	gone := draft(key, textOf(last))
	gone.Created, gone.Expires = last.Created, last.Expires
	return c.happen(store.Deleted, gone, at)
}

func (c *contents) emit(key, text string, at time.Time) *store.Object {
	return c.happen(store.Emitted, draft(key, text), at)
}

// expire deletes what has expired by now, the earliest first, each at its time or, if that was
// before, at from.
func (c *contents) expire(from, now time.Time) {
	due := slices.DeleteFunc(c.sorted(), func(o *store.Object) bool { return o.Expires.IsZero() || o.Expires.After(now) })
	slices.SortStableFunc(due, func(a, b *store.Object) int { return cmp.Compare(a.Expires.UnixNano(), b.Expires.UnixNano()) })
	for _, o := range due {
		at := o.Expires
		if at.Before(from) {
			at = from
		}
		c.remove(o.Key, at)
	}
}

// listed returns the objects under a prefix at a revision, behind a key.
func (c *contents) listed(at store.Revision, prefix, after string) (texts []string) {
	texts = []string{}
	for _, o := range c.states[at] {
		if store.HasPrefix(o.Key, prefix) && o.Key > after {
			texts = append(texts, describe(o))
		}
	}
	return texts
}

// told returns the events in (after, through] under a prefix; see [tellOf].
func (c *contents) told(after, through store.Revision, prefix string, noPrev bool) (texts []string) {
	for _, ev := range c.events {
		if ev.Revision > after && ev.Revision <= through && store.HasPrefix(ev.Key(), prefix) {
			texts = append(texts, tellOf(ev, noPrev))
		}
	}
	return texts
}

// tellOf describes an event, or without Prev what is in it for a consumer that knows the
// state before.
func tellOf(ev store.Event, noPrev bool) string {
	switch {
	case !noPrev:
		return tell(ev)
	case ev.Type == store.Deleted:
		return ev.String()
	}
	return ev.String() + ": " + describe(ev.Object)
}
