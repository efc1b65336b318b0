package engine

import "github.com/watchmill/watchmill/store"

// LabelValues are labels with a function each that returns the label's value, for types
// that have no map of labels, as in
//
//	engine.LabelValues[Pod]{"app": func(p Pod) string { return p.App }}
//
// An object does not have a label for which the value is "".
type LabelValues[T any] map[string]func(T) string

// Labels are the labels of an object, by name: l.Get("app"). They are a map or values.
type Labels = store.Labels
