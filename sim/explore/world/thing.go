package world

import (
	"math/rand/v2"
	"strings"

	"github.com/watchmill/watchmill/engine"
)

// Thing is the object type of [Things]. App may be empty, for an object without that label. N is random,
// so that two writes hardly ever have equal values.
type Thing struct {
	Key, App, Node string
	N              uint32
}

// Things returns the configuration with which the engine itself is explored: few keys, and
// every kind of selection.
func Things() Config[Thing] {
	keys := []string{"x/1", "x/2", "y/1", "y/2", "z"}
	apps := []string{"web", "web", "db", "db", "lb", ""}
	nodes := []string{"n1", "n2"}
	return Config[Thing]{
		Engine: engine.Config[Thing]{
			Key:         func(o Thing) string { return o.Key },
			LabelValues: engine.LabelValues[Thing]{"app": func(o Thing) string { return o.App }},
			Fields:      engine.Fields[Thing]{"node": func(o Thing) string { return o.Node }},
			Equal:       func(a, b Thing) bool { return a == b },
			Index:       []string{"node"}, IndexLabels: []string{"app"},
		},
		Draw: func(r *rand.Rand) Thing {
			return Thing{keys[r.IntN(len(keys))], apps[r.IntN(len(apps))], nodes[r.IntN(len(nodes))], r.Uint32()}
		},
		Selections: []Selection[Thing]{
			{},
			{Labels: "app=web", Selects: func(o Thing) bool { return o.App == "web" }},
			{Labels: "app!=web", Selects: func(o Thing) bool { return o.App != "web" }},
			{Labels: "app in (web,db)", Selects: func(o Thing) bool { return o.App == "web" || o.App == "db" }},
			{Fields: "node=n1", Selects: func(o Thing) bool { return o.Node == "n1" }},
			{Fields: "node!=n1", Labels: "app=db", Selects: func(o Thing) bool { return o.Node != "n1" && o.App == "db" }},
			{Prefix: "x", Selects: func(o Thing) bool { return strings.HasPrefix(o.Key, "x/") }},
			{Key: "y/1", Selects: func(o Thing) bool { return o.Key == "y/1" }},
			{Prefix: "y", Labels: "app=web", Selects: func(o Thing) bool { return strings.HasPrefix(o.Key, "y/") && o.App == "web" }},
			{Labels: "app", Selects: func(o Thing) bool { return o.App != "" }},
			{Labels: "!app", Selects: func(o Thing) bool { return o.App == "" }},
			{Labels: "app,app notin (lb)", Selects: func(o Thing) bool { return o.App != "" && o.App != "lb" }},
			{Key: "x/2", Labels: "app=web", Selects: func(o Thing) bool { return o.Key == "x/2" && o.App == "web" }},
		},
	}
}
