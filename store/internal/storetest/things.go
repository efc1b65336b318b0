// Package storetest has what the tests of objects, trees and windows share: a type of object, states
// of it, and texts of states and events.
package storetest

import (
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/store"
)

// Thing is what most of these tests keep: a header and a value.
type Thing struct {
	store.Object
	Value string
}

// Columns are the fields that things have.
var Columns = store.NewColumns("a", "app", "b", "p", "q", "r", "spec.nodeName", "status.phase", "x", "y")

// Things is the schema of things.
var Things = &store.Schema{
	Fields:   Columns,
	New:      func() *store.Object { return &new(Thing).Object },
	Clone:    func(o *store.Object) *store.Object { c := *store.As[Thing](o); return &c.Object },
	Pointer:  func(o *store.Object) any { return &store.As[Thing](o).Value },
	Key:      func(o *store.Object) string { return store.As[Thing](o).Value },
	Describe: func(*store.Object) {},
	Size:     func(o *store.Object) int { return len(store.As[Thing](o).Value) },
	Equal:    func(a, b *store.Object) bool { return store.As[Thing](a).Value == store.As[Thing](b).Value },
}

// NewThing returns a thing with this header.
func NewThing(header store.Object) *store.Object { return &(&Thing{Object: header}).Object }

// ValueOf returns a thing's value.
func ValueOf(o *store.Object) string { return store.As[Thing](o).Value }

// Row returns the columns of a thing with these fields.
func Row(set fields.Set) []string {
	values := make([]string, len(Columns))
	for i, name := range Columns {
		values[i] = set[name]
	}
	return values
}
