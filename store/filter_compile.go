package store

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// requireLabels compiles a label selector into exact and other
// requirements.
func (f *Filter) requireLabels(s labels.Selector) {
	if s == nil || s.Empty() {
		return
	}
	requirements, selectable := s.Requirements()
	f.impossible = f.impossible || !selectable
	for _, r := range requirements {
		if value, ok := onlyValue(&r); ok {
			f.exact = append(f.exact, Requirement{LabelAttribute(r.Key()), value})
		} else {
			f.otherLabels = append(f.otherLabels, r)
		}
	}
}

// onlyValue returns the one value that r allows, if it is of that form.
func onlyValue(r *labels.Requirement) (string, bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		if values := distinct(r); len(values) == 1 {
			return values[0], true
		}
	}
	return "", false
}

func distinct(r *labels.Requirement) []string {
	values := r.ValuesUnsorted()
	slices.Sort(values)
	return slices.Compact(values)
}

// requireFields compiles a field selector. The error is an
// [*UnknownFieldError] if it names a field that is not declared.
func (f *Filter) requireFields(columns Columns, s fields.Selector) error {
	if s == nil || s.Empty() {
		return nil
	}
	requirements := s.Requirements()
	f.impossible = f.impossible || !s.Matches(witness(requirements))
	for _, r := range requirements {
		attribute, err := columns.Attribute(r.Field)
		switch {
		case err != nil:
			return err
		case r.Operator == selection.NotEquals:
			f.otherFields = append(f.otherFields, Requirement{attribute, r.Value})
		default:
			f.exact = append(f.exact, Requirement{attribute, r.Value})
		}
	}
	return nil
}

// witness builds a set that passes the requirements unless they contradict each
// other. A selector that rejects it selects nothing. The requirements alone do
// not show that: a conjunction with fields.Nothing lists only those of its other
// terms.
func witness(requirements fields.Requirements) fields.Set {
	set := fields.Set{}
	for _, r := range requirements {
		if r.Operator == selection.NotEquals && len(set[r.Field]) <= len(r.Value) {
			set[r.Field] = r.Value + "." // longer than every forbidden value, so different from each
		}
	}
	for _, r := range requirements {
		if r.Operator != selection.NotEquals {
			set[r.Field] = r.Value
		}
	}
	return set
}

// normalize sorts the exact requirements, drops repetitions and finds those that
// contradict each other.
func (f *Filter) normalize() {
	slices.SortFunc(f.exact, func(a, b Requirement) int {
		return cmp.Or(cmp.Compare(kindOrder(a), kindOrder(b)),
			cmp.Compare(a.Attribute.Name, b.Attribute.Name), cmp.Compare(a.Value, b.Value))
	})
	f.exact = slices.Compact(f.exact)
	for i := 1; i < len(f.exact); i++ {
		f.impossible = f.impossible || f.exact[i].Attribute == f.exact[i-1].Attribute
	}
	if f.impossible {
		f.exact, f.otherFields, f.otherLabels = nil, nil, nil
	}
}

// kindOrder puts fields before labels: they tend to be more selective.
func kindOrder(r Requirement) int {
	if r.Attribute.Kind == Label {
		return 1
	}
	return 0
}

// canonicalForm writes the filter as sorted, quoted terms. Quoting keeps
// different filters different whatever their names and values contain.
func (f *Filter) canonicalForm() string {
	if f.impossible {
		return "nothing"
	}
	var terms []string
	add := func(parts ...string) { terms = append(terms, strings.Join(parts, "")) }
	for _, r := range f.exact {
		add(r.Attribute.Kind.String(), " ", strconv.Quote(r.Attribute.Name), " = ", strconv.Quote(r.Value))
	}
	for _, r := range f.otherFields {
		add(canonicalField(r))
	}
	for i := range f.otherLabels {
		add(canonicalLabel(&f.otherLabels[i]))
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	if f.prefix != "" {
		terms = slices.Insert(terms, 0, "prefix "+strconv.Quote(f.prefix))
	}
	if f.key != "" {
		terms = slices.Insert(terms, 0, "key "+strconv.Quote(f.key))
	}
	return strings.Join(terms, " and ")
}

// canonicalField writes the requirement that a field does not have a value.
func canonicalField(r Requirement) string {
	return "field " + strconv.Quote(r.Attribute.Name) + " != " + strconv.Quote(r.Value)
}

// canonicalLabel writes a label requirement that is not exact; "!=" is "notin"
// with one value.
func canonicalLabel(r *labels.Requirement) string {
	label, op := "label "+strconv.Quote(r.Key()), r.Operator()
	switch op {
	case selection.Exists:
		return label + " exists"
	case selection.DoesNotExist:
		return label + " absent"
	case selection.NotEquals:
		op = selection.NotIn
	}
	values := distinct(r)
	for i, v := range values {
		values[i] = strconv.Quote(v)
	}
	return label + " " + string(op) + " (" + strings.Join(values, ", ") + ")"
}
