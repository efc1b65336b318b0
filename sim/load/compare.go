package load

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// objects is a state: what each key has.
type objects = map[string]item

// maxDifferences is how many differences a report holds.
const maxDifferences = 10

func (r *Replayed) differ(what, where string) {
	if len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, what+": "+where)
	}
}

// compare holds what the engine and the watchers have against what the backend
// has, and that against what the history says.
func (r *run) compare(ctx context.Context, rep *Replayed, all []*outcome) error {
	h := r.history
	rep.Objects = len(h.truth)
	final := trace.State{}
	for _, c := range h.Changes {
		final.Apply(c)
	}
	if d := traceDifference(r.selected(final), h.truth); d != "" {
		rep.differ("the backend and the trace", d)
	}
	for _, view := range []struct {
		name string
		read engine.Read
	}{{"cached", engine.Cached()}, {"latest", engine.Latest()}} {
		list, err := r.engine.List(ctx, engine.ListOptions{Fields: h.Fields, Read: view.read})
		if err != nil {
			return err
		}
		if d := difference(byKey(list.Items), h.truth); d != "" {
			rep.differ("the engine ("+view.name+") and the backend", d)
		}
	}
	for _, o := range all {
		rep.compareOutcome(o, h.truth)
	}
	for _, mirror := range h.informers {
		r.compareLister(rep, mirror)
	}
	return nil
}

// compareOutcome counts a watcher that has what there is. What a lost one has is
// not held against it.
func (r *Replayed) compareOutcome(o *outcome, truth objects) {
	if o.lost != nil {
		return
	}
	if r.State == nil {
		r.State = make(trace.State, len(o.state))
		for key, object := range o.state {
			r.State[key] = object.Value.Version
		}
	}
	if d := difference(o.state, truth); d != "" {
		r.differ(fmt.Sprintf("watcher %d and the backend", o.number), d)
		return
	}
	r.Equal++
}

// compareLister holds what an informer has against what there is.
func (r *run) compareLister(rep *Replayed, mirror *informer.SharedInformer[content.Item]) {
	listed := objects{}
	for _, o := range mirror.List(nil) {
		if store.Matches(r.history.selected, store.Header(o)) {
			listed[o.Key] = o
		}
	}
	if d := difference(listed, r.history.truth); d != "" {
		rep.differ(fmt.Sprintf("the lister of %s and the backend", mirror.Name()), d)
	}
}

// backendState asks the backend itself for what is selected.
func (r *run) backendState(ctx context.Context) (objects, error) {
	list, err := r.storage.List(ctx, backend.ListOptions{})
	if err != nil {
		return nil, err
	}
	selected := slices.DeleteFunc(list.Items, func(o *store.Object) bool { return !store.Matches(r.history.selected, o) })
	return byKey(store.AsObjects[engine.Object[content.Item]](selected)), nil
}

// selected returns the part of a trace's state that the watchers select.
func (r *run) selected(state trace.State) trace.State {
	part := trace.State{}
	for key, version := range state {
		if r.selects(key) {
			part[key] = version
		}
	}
	return part
}

// selects reports whether the watchers of a history select the file that a key
// names.
func (r *run) selects(key string) bool {
	if r.history.selected.Everything() {
		return true
	}
	schema := content.Config(r.plan).Schema()
	o := schema.New()
	o.Key = key
	*schema.Pointer(o).(*content.Item) = content.NewMaker(&r.plan.Objects, 0, 0).File(key, "")
	schema.Describe(o)
	return store.Matches(r.history.selected, o)
}

func byKey(items []item) objects {
	state := make(objects, len(items))
	for _, o := range items {
		state[o.Key] = o
	}
	return state
}

// difference describes the first object, by key, that got and want do not have
// in common; "" if they are the same.
func difference(got, want objects) string {
	if maps.EqualFunc(got, want, same) {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(union(got, want))) {
		if g, w := got[key], want[key]; g == nil || w == nil || !same(g, w) {
			return fmt.Sprintf("%q is %s and %s", key, describe(g), describe(w))
		}
	}
	return ""
}

func same(a, b item) bool { return a.Value.Version == b.Value.Version && a.Revision == b.Revision }

func describe(o item) string {
	if o == nil {
		return "not there"
	}
	return fmt.Sprintf("%s at revision %d", o.Value.Version, o.Revision)
}

// traceDifference is difference from a state that knows no revisions.
func traceDifference(want trace.State, got objects) string {
	for _, key := range slices.Sorted(maps.Keys(union(got, want))) {
		version, wanted := want[key]
		switch o := got[key]; {
		case !wanted:
			return fmt.Sprintf("%q is %s and should not be", key, describe(o))
		case o == nil || o.Value.Version != version:
			return fmt.Sprintf("%q is %s and should be %s", key, describe(o), version)
		}
	}
	return ""
}

// union returns the keys of both.
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
