package engine

import "k8s.io/apimachinery/pkg/labels"

// LabelValues are labels with a function each that returns the label's value, for types
// that have no map of labels, as in
//
//	engine.LabelValues[Pod]{"app": func(p Pod) string { return p.App }}
//
// An object does not have a label for which the value is "".
type LabelValues[T any] map[string]func(T) string

// labelNames are the names of [Config].LabelValues, sorted.
type labelNames []string

// set returns the labels with these values: before, if it has the same ones, so that an
// update that changes no label makes no map.
func (names labelNames) set(values []string, before labels.Set) labels.Set {
	n, same := 0, true
	for i, value := range values {
		if value != "" {
			n++
			same = same && before[names[i]] == value
		}
	}
	switch {
	case same && n == len(before):
		return before
	case n == 0:
		return nil
	}
	set := make(labels.Set, n)
	for i, value := range values {
		if value != "" {
			set[names[i]] = value
		}
	}
	return set
}
