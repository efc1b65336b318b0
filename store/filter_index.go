package store

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Requirement demands that an attribute has exactly this value.
type Requirement struct {
	Attribute Attribute
	Value     string
}

// Exact returns the requirements that an index on the attribute answers: fields
// first, then labels, each by name, at most one per attribute. Every object
// that matches has all of these values.
//
// An object without a field has it with the value ""; an object without a label
// does not. The slice is shared; do not change it.
func (f *Filter) Exact() []Requirement {
	if f == nil {
		return nil
	}
	return f.exact
}

// Presence demands that an object has a label: with one of the values, or, if there
// are none, with any.
type Presence struct {
	Label  string
	Values []string
}

// Present returns the requirements, besides those of [Filter.Exact], that only objects
// with a certain label meet: "in" with several values, "exists", and comparisons of
// numbers, whose values are left out. Every object that matches has all of these
// labels.
func (f *Filter) Present() []Presence {
	if f == nil {
		return nil
	}
	var all []Presence
	for i := range f.otherLabels {
		switch r := &f.otherLabels[i]; r.Operator() {
		case selection.In:
			all = append(all, Presence{r.Key(), distinct(r)})
		case selection.Exists, selection.GreaterThan, selection.LessThan:
			all = append(all, Presence{Label: r.Key()})
		}
	}
	return all
}

// Exclusion demands that an object does not have certain values of one attribute, or
// does not have the attribute.
type Exclusion struct {
	canonical string
	field     Requirement
	label     *labels.Requirement // nil if it is about the field
}

// Exclusions returns the requirements that objects meet for what they do not have:
// "!=", "notin" and "!exists". Every object that matches meets all of them.
func (f *Filter) Exclusions() []Exclusion {
	if f == nil {
		return nil
	}
	var all []Exclusion
	for _, r := range f.otherFields {
		all = append(all, Exclusion{canonical: canonicalField(r), field: r})
	}
	for i := range f.otherLabels {
		switch r := &f.otherLabels[i]; r.Operator() {
		case selection.NotEquals, selection.NotIn, selection.DoesNotExist:
			all = append(all, Exclusion{canonical: canonicalLabel(r), label: r})
		}
	}
	return all
}

// String returns the same text for exclusions that demand the same.
func (e Exclusion) String() string { return e.canonical }

// Meets reports whether the object meets the exclusion. It does not allocate.
func (e Exclusion) Meets(o *Object) bool {
	if e.label != nil {
		return e.label.Matches(o.Labels.matched())
	}
	return o.Field(e.field.Attribute.Column) != e.field.Value
}
