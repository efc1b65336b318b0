package engine_test

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
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
