package engine_test

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// pod is the object of the tests that are not scenarios.
type pod struct {
	Name string
	App  string
	N    int
}

// cfg is the least that an engine of pods needs.
func cfg() engine.Config[pod] {
	return engine.Config[pod]{
		Key:    func(p pod) string { return p.Name },
		Labels: func(p pod) labels.Set { return labels.Set{"app": p.App} },
	}
}

// draftOf returns what an engine would give to its backend to store value.
func draftOf[T any](c engine.Config[T], value T) *store.Object {
	schema, draft := c.Schema(), store.Header(&engine.Object[T]{Value: value})
	draft.Key = schema.Key(draft)
	schema.Describe(draft)
	return draft
}
