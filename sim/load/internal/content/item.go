package content

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// Item is an object of the load.
type Item struct {
	Key     string
	Attrs   *Attributes
	Payload []byte
	// Version is the version of a file of a trace; IsFile says that the item is one.
	Version string
	IsFile  bool
	// Due is when the write was due, and Stored when it reached the storage, both in
	// nanoseconds since the run's epoch.
	Due, Stored int64
}

// Attributes are what selectors match. They are immutable.
type Attributes struct {
	Labels labels.Set
	Fields fields.Set
}

// Config returns the configuration of an engine for the items of a plan. No two items are
// equal except files of the same version, so that every other write is a change.
func Config(p *scenario.Plan) engine.Config[Item] {
	cfg := engine.Config[Item]{
		Key:    func(i Item) string { return i.Key },
		Labels: func(i Item) labels.Set { return i.Attrs.Labels },
		Fields: engine.Fields[Item]{},
		Size:   func(i Item) int { return len(i.Payload) },
		Equal:  func(a, b Item) bool { return a.IsFile && b.IsFile && a.Version == b.Version },
	}
	for _, name := range fieldNames(p) {
		cfg.Fields[name] = func(i Item) string { return i.Attrs.Fields[name] }
	}
	return cfg
}

// fieldNames returns the names of the fields that the plan's items have.
func fieldNames(p *scenario.Plan) []string {
	names := slices.Collect(maps.Keys(p.Objects.Fields))
	if slices.ContainsFunc(p.Writers, func(w scenario.Writer) bool { return w.Trace != "" }) {
		names = append(names, scenario.TraceFields...)
	}
	return names
}

// Of returns the item in an object of an engine, or of a storage, with a configuration from
// [Config].
func Of(o *store.Object) *Item { return &store.As[engine.Object[Item]](o).Value }
