package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// objects is a state: what each key has.
type objects = map[string]*engine.Object[File]

// compare holds what the engine and the consumers have against what the backend
// has, and that against what the trace says.
func (r *run) compare(ctx context.Context, report *Report) error {
	truth, err := r.backendState(ctx)
	if err != nil {
		return err
	}
	report.Objects = len(truth)
	if d := traceDifference(r.selected(r.input.final), truth); d != "" {
		report.differ("the backend and the trace", d)
	}
	for _, view := range []struct {
		name string
		read engine.Read
	}{{"cached", engine.Cached()}, {"latest", engine.Latest()}} {
		list, err := r.engine.List(ctx, engine.ListOptions{Fields: r.opts.Select, Read: view.read})
		if err != nil {
			return err
		}
		if d := difference(byKey(list.Items), truth); d != "" {
			report.differ("the engine ("+view.name+") and the backend", d)
		}
	}
	for _, c := range r.consumers {
		report.compareConsumer(c.result(), truth)
	}
	return r.compareListers(report, truth)
}

// compareConsumer counts a consumer that has what there is. What a lost one has
// is not held against it.
func (r *Report) compareConsumer(c *outcome, truth objects) {
	if c.lost != nil {
		return
	}
	if r.State == nil {
		r.State = make(trace.State, len(c.state))
		for key, o := range c.state {
			r.State[key] = o.Value.Version
		}
	}
	if d := difference(c.state, truth); d != "" {
		r.differ(fmt.Sprintf("watcher %d and the backend", c.number), d)
		return
	}
	r.Equal++
}

func (r *Report) differ(who, where string) {
	if len(r.Differences) < MaxErrors {
		r.Differences = append(r.Differences, who+": "+where)
	}
}

// backendState asks the backend itself for what is selected.
func (r *run) backendState(ctx context.Context) (objects, error) {
	filter, err := r.opts.filter()
	if err != nil {
		return nil, err
	}
	list, err := r.engine.Backend().List(ctx, backend.ListOptions{})
	if err != nil {
		return nil, err
	}
	selected := slices.DeleteFunc(list.Items, func(o *store.Object) bool { return !store.Matches(filter, o) })
	return byKey(store.AsObjects[engine.Object[File]](selected)), nil
}

// selected returns the part of a trace's state that the watchers select.
func (r *run) selected(state trace.State) trace.State {
	filter, err := r.opts.filter()
	if err != nil || filter.Everything() {
		return state
	}
	part := trace.State{}
	for key, version := range state {
		if store.Matches(filter, header(key)) {
			part[key] = version
		}
	}
	return part
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

func same(a, b *engine.Object[File]) bool { return a.Value == b.Value && a.Revision == b.Revision }

func describe(o *engine.Object[File]) string {
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
