package watcher_test

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// thing is what the tests store.
type thing struct {
	store.Object
	Value string
}

// columns are the fields that the tests' selectors name.
var columns = store.NewColumns("metadata.namespace", "node", "spec.nodeName", "status.phase")

// schema has what converting and comparing need.
var schema = &store.Schema{
	Fields: columns,
	Clone: func(o *store.Object) *store.Object {
		c := *store.As[thing](o)
		return &c.Object
	},
}

// value returns the value behind a header.
func value(o *store.Object) string { return store.As[thing](o).Value }

// column returns the place of a field among the columns.
func column(name string) int { return slices.Index(columns, name) }

// at is when the write of that revision happened.
func at(rev store.Revision) time.Time { return time.Unix(int64(rev), 0) }

// filter returns the filter of options that are right.
func filter(opts store.FilterOptions) *store.Filter {
	f, err := store.NewFilter(columns, opts)
	if err != nil {
		panic(err)
	}
	return f
}

// app selects the objects of one app.
func app(name string) *store.Filter { return filter(store.FilterOptions{Labels: "app=" + name}) }

// state is a state of object a, which belongs to that app.
func state(app string, rev store.Revision) *store.Object {
	return &(&thing{Value: app, Object: store.Object{
		Key: "a", Revision: rev, Labels: store.LabelsOf(labels.Set{"app": app}), Fields: make([]string, len(columns)), Written: at(rev),
	}}).Object
}
