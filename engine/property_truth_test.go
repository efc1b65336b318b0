package engine_test

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
)

// thing is the object of the properties. N makes every write another value.
type thing struct {
	Key, App, Node string
	N              int
}

func thingConfig() engine.Config[thing] {
	return engine.Config[thing]{
		Key:    func(o thing) string { return o.Key },
		Labels: func(o thing) labels.Set { return labels.Set{"app": o.App} },
		Fields: func(o thing) fields.Set { return fields.Set{"node": o.Node} },
	}
}

// want is a selection as the engine takes it, and the same as a function: the
// model must not ask the code that it judges.
type want struct {
	opts  engine.WatchOptions
	match func(thing) bool
}

var wants = []want{
	{engine.WatchOptions{}, func(thing) bool { return true }},
	{engine.WatchOptions{Labels: "app=web"}, func(o thing) bool { return o.App == "web" }},
	{engine.WatchOptions{Labels: "app!=web"}, func(o thing) bool { return o.App != "web" }},
	{engine.WatchOptions{Labels: "app in (web,db)"}, func(o thing) bool { return o.App == "web" || o.App == "db" }},
	{engine.WatchOptions{Fields: "node=n1"}, func(o thing) bool { return o.Node == "n1" }},
	{engine.WatchOptions{Fields: "node!=n1", Labels: "app=db"}, func(o thing) bool { return o.Node != "n1" && o.App == "db" }},
	{engine.WatchOptions{Prefix: "x"}, func(o thing) bool { return strings.HasPrefix(o.Key, "x/") }},
	{engine.WatchOptions{Key: "y/1"}, func(o thing) bool { return o.Key == "y/1" }},
	{engine.WatchOptions{Prefix: "y", Labels: "app=web"}, func(o thing) bool { return strings.HasPrefix(o.Key, "y/") && o.App == "web" }},
}

// change is one write as storage acknowledged it.
type change struct {
	kind engine.EventType
	key  string
	// now is the value after the change, was the one before: nil if there was
	// none. Emitted values are in now alone.
	now, was *thing
}

// versions are the keys of a state with the revisions of their objects.
type versions map[string]engine.Revision

// truth is versioned storage as plainly as it can be said: all changes, and the
// state after each. It starts empty at revision 1, and each change takes the
// next revision.
type truth struct {
	log    []change
	states []map[string]entry
	// witnessed are the revisions that the engine was given as they happened.
	// The others it can only have found by listing.
	witnessed map[engine.Revision]bool
}

// entry is an object of a state.
type entry struct {
	value    thing
	revision engine.Revision
}

func newTruth() *truth {
	return &truth{states: []map[string]entry{{}}, witnessed: map[engine.Revision]bool{1: true}}
}

func (t *truth) newest() engine.Revision { return engine.Revision(len(t.states)) }

// at returns the state at rev, which has happened.
func (t *truth) at(rev engine.Revision) map[string]entry { return t.states[rev-1] }

// change returns what happened at rev, which is above 1.
func (t *truth) change(rev engine.Revision) change { return t.log[rev-2] }

// add notes the next change and returns its revision.
func (t *truth) add(kind engine.EventType, value thing) engine.Revision {
	state := maps.Clone(t.at(t.newest()))
	c := change{kind: kind, key: value.Key, now: &value}
	if was, ok := state[value.Key]; ok && kind != engine.Emitted {
		c.was = &was.value
	}
	rev := t.newest() + 1
	switch kind {
	case engine.Deleted:
		c.now = nil
		delete(state, value.Key)
	case engine.Emitted:
	default:
		state[value.Key] = entry{value, rev}
	}
	t.log, t.states = append(t.log, c), append(t.states, state)
	return rev
}

// seen is what a selection shows of a change: whether it does, as which type,
// and with which value.
func (c change) seen(match func(thing) bool) (kind engine.EventType, value thing, ok bool) {
	before, after := c.was != nil && match(*c.was), c.now != nil && match(*c.now)
	switch {
	case c.kind == engine.Emitted:
		return engine.Emitted, *c.now, after
	case before && after:
		return engine.Modified, *c.now, true
	case after:
		return engine.Added, *c.now, true
	case before:
		return engine.Deleted, *c.was, true
	}
	return 0, thing{}, false
}

// view is what a selection shows of the state at rev.
func (t *truth) view(rev engine.Revision, match func(thing) bool) versions {
	v := versions{}
	for key, e := range t.at(rev) {
		if match(e.value) {
			v[key] = e.revision
		}
	}
	return v
}

// missed returns the first revision in (after, through] that the engine saw
// happen and that the selection shows, zero if there is none.
func (t *truth) missed(after, through engine.Revision, match func(thing) bool) engine.Revision {
	for rev := after + 1; rev <= through; rev++ {
		if _, _, shown := t.change(rev).seen(match); shown && t.witnessed[rev] {
			return rev
		}
	}
	return 0
}

// keys returns the keys of v in order.
func (v versions) keys() []string { return slices.Sorted(maps.Keys(v)) }
