package states

import (
	"fmt"
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/trace"
)

// Item is an object of the load.
type Item = *engine.Object[content.Item]

// Objects is a state: the object of each key.
type Objects = map[string]Item

// Of returns the state of objects.
func Of(items []Item) Objects {
	state := make(Objects, len(items))
	for _, o := range items {
		state[o.Key] = o
	}
	return state
}

// Difference describes the first object, by key, in which got and want differ; "" if
// they are equal.
func Difference(got, want Objects) string {
	if maps.EqualFunc(got, want, same) {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(union(got, want))) {
		if g, w := got[key], want[key]; g == nil || w == nil || !same(g, w) {
			return fmt.Sprintf("%q is %s and %s", key, Describe(g), Describe(w))
		}
	}
	return ""
}

func same(a, b Item) bool { return a.Value.Version == b.Value.Version && a.Revision == b.Revision }

// Describe returns the version and the revision of an object in words; nil is none.
func Describe(o Item) string {
	if o == nil {
		return "not there"
	}
	return fmt.Sprintf("%s at revision %d", o.Value.Version, o.Revision)
}

// TraceDifference describes the first difference of got from want, a state without
// revisions; "" if they are equal.
func TraceDifference(got Objects, want trace.State) string {
	for _, key := range slices.Sorted(maps.Keys(union(got, want))) {
		version, wanted := want[key]
		switch o := got[key]; {
		case !wanted:
			return fmt.Sprintf("%q is %s and should not be", key, Describe(o))
		case o == nil || o.Value.Version != version:
			return fmt.Sprintf("%q is %s and should be %s", key, Describe(o), version)
		}
	}
	return ""
}

// union returns the keys of both maps.
func union[A, B any](a map[string]A, b map[string]B) map[string]struct{} {
	keys := make(map[string]struct{}, len(a)+len(b))
	for key := range a {
		keys[key] = struct{}{}
	}
	for key := range b {
		keys[key] = struct{}{}
	}
	return keys
}
