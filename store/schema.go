package store

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/watchmill/watchmill/usercode"
)

// Schema has the functions with which the core handles values of one Go type. All of them
// but SetRevision are required. They are pure, do not keep or change their arguments, may be
// called from any goroutine, and may panic where they run user code, which callers contain.
type Schema struct {
	// Type is the type of the objects' values. An engine or an informer refuses storage of
	// another type, whose values it would misread. Nil means that it is
	// not known.
	Type reflect.Type
	// Fields are the names of the fields that selectors may name.
	Fields Columns
	// New returns an object with the zero value, to decode into.
	New func() *Object
	// Clone returns a copy of an object with its value, as assignment copies.
	Clone func(*Object) *Object
	// Pointer returns a *T that points to the object's value.
	Pointer func(*Object) any
	// Key returns the key of the object's value; see [ValidateKey] for what is
	// allowed. Where the key cannot follow from the value, it returns the object's
	// own.
	Key func(*Object) string
	// Describe fills in an object's Labels and Fields from its value: see [LabelsOf] and
	// [LabelNames.Labels] for the labels. Before the call they may be those of the state
	// that the object replaces, which are shared: Describe keeps them if they are right, and
	// otherwise sets others, and does not change them in place.
	Describe func(*Object)
	// Size estimates the bytes that an object's value and labels hold besides the object
	// itself, for the bounds of the history.
	Size func(*Object) int
	// Equal reports whether two objects have the same value, so that an update
	// that changes nothing writes nothing.
	Equal func(a, b *Object) bool
	// SetRevision, if not nil, puts a revision into an object's value: it changes the
	// object, which is not shared yet, but nothing that the value points to.
	// Backends call [Schema.Stamp] when the revision is known, some under their lock: it
	// must be quick and must not call the backend.
	SetRevision func(o *Object, rev Revision)
}

// Stamp puts rev into the value of o, which is not shared yet, if the schema says
// how. The error is a [*usercode.PanicError]; then o is as it was.
func (s *Schema) Stamp(o *Object, rev Revision) error {
	if s.SetRevision == nil {
		return nil
	}
	return usercode.Call("Schema.SetRevision", o.Key, func() { s.SetRevision(o, rev) })
}

// Gone returns a copy of o as the object of its deletion at rev. If SetRevision
// panics, which it did not when o was written, the value keeps the revision that it
// has: a deletion that has happened cannot fail.
func (s *Schema) Gone(o *Object, rev Revision, at time.Time) *Object {
	gone := s.Clone(o)
	gone.Revision, gone.Written = rev, at
	_ = s.Stamp(gone, rev)
	return gone
}

// Columns are the names of a type's fields, each once, sorted. The position of a
// name is that of its value in [Object.Fields].
type Columns []string

// NewColumns returns the columns of these names, sorted.
func NewColumns(names ...string) Columns {
	c := slices.Clone(names)
	slices.Sort(c)
	return slices.Compact(c)
}

// Attribute returns the field of that name, for indexes and queries. The error is
// an [*UnknownFieldError] if there is none.
func (c Columns) Attribute(name string) (Attribute, error) {
	i, found := slices.BinarySearch(c, name)
	if !found {
		return Attribute{}, &UnknownFieldError{Name: name, Declared: c}
	}
	return Attribute{Kind: Field, Name: name, Column: i}, nil
}

// DefaultSize is the estimate in bytes for an object whose size is not measured:
// a small struct with a few strings.
const DefaultSize = 256

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

// Of returns o's value of a, and whether an index on a contains o.
func (a Attribute) Of(o *Object) (value string, held bool) {
	switch a.Kind {
	case Field:
		return o.Field(a.Column), true
	case Label:
		value, held = o.Labels.Lookup(a.Name)
	}
	return value, held
}
