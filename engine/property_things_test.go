package engine_test

import (
	"strings"

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
		Fields: engine.Fields[thing]{"node": func(o thing) string { return o.Node }},
	}
}

func sameThing(a, b thing) bool { return a == b }

// want is a selection as the engine takes it, and the same as a function: the
// judge must not ask the code that he judges.
type want struct {
	opts  engine.WatchOptions
	match func(thing) bool
}

// list asks for what the selection shows.
func (w want) list(read engine.Read) engine.ListOptions {
	return engine.ListOptions{Key: w.opts.Key, Prefix: w.opts.Prefix, Labels: w.opts.Labels, Fields: w.opts.Fields, Read: read}
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
