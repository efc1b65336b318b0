package store

import (
	"fmt"

	"github.com/tidwall/btree"
)

// AttributeKind is the kind of an attribute: a field or a label.
type AttributeKind uint8

// The kinds of attribute.
const (
	// Field: in Object.Fields. To field selectors, every object has every field;
	// one that is not set is "".
	Field AttributeKind = iota + 1
	// Label: in Object.Labels. To label selectors, an object without the label
	// differs from one with the label "".
	Label
)

// String returns "field" or "label".
func (k AttributeKind) String() string {
	switch k {
	case Field:
		return "field"
	case Label:
		return "label"
	}
	return fmt.Sprintf("AttributeKind(%d)", uint8(k))
}

// Attribute is a label or a field that can be indexed.
type Attribute struct {
	Kind AttributeKind
	Name string
	// Column is a field's place in [Object.Fields]; see [Columns.Attribute].
	Column int
}

// LabelAttribute names a label.
func LabelAttribute(name string) Attribute { return Attribute{Kind: Label, Name: name} }

// String returns the kind and the name, such as "field:spec.nodeName".
func (a Attribute) String() string { return a.Kind.String() + ":" + a.Name }

// valueIn returns o's value of a, and whether an index on a contains o.
func valueIn(a Attribute, o *Object) (value string, held bool) {
	switch a.Kind {
	case Field:
		return o.Field(a.Column), true
	case Label:
		value, held = o.Labels[a.Name]
	}
	return value, held
}

// entry is an object in an index. It repeats the key so that a search compares
// without following the pointer.
type entry struct {
	value, key string
	object     *Object
}

// before orders entries by value, then key: the objects of one value are a run
// in key order.
func (e entry) before(other entry) bool {
	if e.value != other.value {
		return e.value < other.value
	}
	return e.key < other.key
}

// index is the objects by the value of one attribute.
type index struct {
	attribute Attribute
	entries   *btree.BTreeG[entry]
}

func newIndex(a Attribute) index {
	return index{a, btree.NewBTreeGOptions(entry.before, btree.Options{NoLocks: true, Degree: degree})}
}

// replace replaces prev by o in the index. Either may be nil.
func (x index) replace(prev, o *Object) {
	is, holds := x.entry(o)
	if Alike(prev, o) {
		// The same entry, if there is one.
		if holds {
			x.entries.Set(is)
		}
		return
	}
	was, held := x.entry(prev)
	if held && !(holds && was.value == is.value) {
		x.entries.Delete(was)
	}
	if holds {
		x.entries.Set(is)
	}
}

// entry returns the entry of o, and whether there is one.
func (x index) entry(o *Object) (entry, bool) {
	if o == nil {
		return entry{}, false
	}
	value, held := valueIn(x.attribute, o)
	return entry{value, o.Key, o}, held
}
