package store

import "fmt"

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
