package world

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store/cache"
)

// The values of an object in an index of the informer are the numbers of the selections that match it, so that most objects
// have several, and each change of an object may change them. What the informer shows by an index, or by a selector, must be
// what a scan of all that it shows finds, which is compared with the history.

// maxIndexes is the most indexes of an informer.
const maxIndexes = 3

// newIndex returns another index for the informer, and notes that it has it.
func (w *World[T]) newIndex() cache.Indexers[T] {
	m := &w.mirrors
	name := fmt.Sprintf("index %d", len(m.indexes))
	m.indexes = append(m.indexes, name)
	return cache.Indexers[T]{name: func(value T) (values []string, err error) {
		for i, s := range w.cfg.Selections {
			if s.selects()(value) {
				values = append(values, strconv.Itoa(i))
			}
		}
		return values, nil
	}}
}

// addIndex performs a step that adds an index to the informer, if there is one.
func (w *World[T]) addIndex() {
	m := &w.mirrors
	if m.informer == nil || len(m.indexes) == maxIndexes {
		return
	}
	if err := m.informer.AddIndexers(w.newIndex()); err != nil {
		w.fail(judge.Failed(judge.Refusals, "informer", "to add an index: %v", err))
	}
}

// judgeIndexes compares what a snapshot of the informer shows by its indexes, and by selectors, with a scan of it: for
// one selection, another one at each step, or for all.
func (w *World[T]) judgeIndexes(snapshot informer.Snapshot[T], all bool) {
	if _, err := snapshot.ByIndex("unknown", "0"); !errors.Is(err, informer.ErrUnknownIndex) {
		w.fail(judge.Failed(judge.Refusals, "informer", "read by an index that it does not have: %v", err))
	}
	scanned := slices.Collect(snapshot.All())
	next := int(w.trace.Number(execution.Steps)) % len(w.cfg.Selections)
	var found []string // the values that objects have
	for i, selected := range w.cfg.Selections {
		want := slices.DeleteFunc(slices.Clone(scanned), func(o *engine.Object[T]) bool { return !selected.selects()(o.Value) })
		if len(want) > 0 {
			found = append(found, strconv.Itoa(i))
		}
		if all || i == next {
			w.judgeSelected(snapshot, selected, want)
			w.judgeIndexed(snapshot, strconv.Itoa(i), want)
		}
	}
	slices.Sort(found)
	for _, name := range w.mirrors.indexes {
		if values, err := snapshot.IndexValues(name); err != nil || !slices.Equal(values, found) {
			w.fail(judge.Failed(judge.ReadState, "informer", "%s has the values %v, of its objects are %v: %v", name, values, found, err))
		}
	}
}

// judgeIndexed compares the objects that have a value in each index with what a scan has found.
func (w *World[T]) judgeIndexed(snapshot informer.Snapshot[T], value string, want []*engine.Object[T]) {
	for _, name := range w.mirrors.indexes {
		objects, err := snapshot.ByIndex(name, value)
		if w.seams.indexed != nil {
			objects = w.seams.indexed(w, objects)
		}
		if err != nil || !slices.Equal(objects, want) {
			w.fail(judge.Failed(judge.ReadState, "informer", "%s has %v for %s, a scan finds %v: %v", name, versionsOf(objects), value, versionsOf(want), err))
		}
		keys, err := snapshot.IndexKeys(name, value)
		if err != nil || !slices.Equal(keys, keysOf(want)) {
			w.fail(judge.Failed(judge.ReadState, "informer", "%s has the keys %v for %s, a scan finds %v: %v", name, keys, value, keysOf(want), err))
		}
	}
}

// judgeSelected compares the objects that a selection by labels alone, or by a prefix alone, shows with what a scan has
// found.
func (w *World[T]) judgeSelected(snapshot informer.Snapshot[T], selected Selection[T], want []*engine.Object[T]) {
	var objects []*engine.Object[T]
	switch {
	case selected.Key+selected.Fields != "", selected.Labels != "" && selected.Prefix != "":
		return
	case selected.Labels != "":
		selector, err := labels.Parse(selected.Labels)
		if err != nil {
			return // no watch has it
		}
		objects = snapshot.List(selector)
	default:
		objects = slices.Collect(snapshot.Under(selected.Prefix))
	}
	if !slices.Equal(objects, want) {
		w.fail(judge.Failed(judge.ReadState, "informer", "it shows %v for labels %q and prefix %q, a scan finds %v", versionsOf(objects), selected.Labels, selected.Prefix, versionsOf(want)))
	}
}

// versionsOf returns the keys and revisions of objects, for people.
func versionsOf[T any](objects []*engine.Object[T]) (versions []string) {
	for _, o := range objects {
		versions = append(versions, fmt.Sprintf("%s@%d", o.Key, o.Revision))
	}
	return versions
}

// keysOf returns the keys of objects.
func keysOf[T any](objects []*engine.Object[T]) (keys []string) {
	for _, o := range objects {
		keys = append(keys, o.Key)
	}
	return keys
}
