package store

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Filter says which objects a reader wants: those with the one key, under the
// prefix, and passing every requirement on labels and fields.
//
// A filter is immutable and safe for concurrent use. A nil *Filter matches
// everything. NewFilter compiles the selectors once, so matching is a few map
// look-ups, runs no user code and cannot panic.
type Filter struct {
	key, prefix string
	// exact are the requirements that an index can answer, sorted and one per
	// attribute; otherFields, all of them "!=", and otherLabels are the rest.
	exact       []Requirement
	otherFields []Requirement
	otherLabels []labels.Requirement
	// impossible: the requirements contradict each other.
	impossible bool
	// canonical is "" for everything and for nothing else.
	canonical string
}

// FilterOptions describes a [Filter]. The zero value matches everything; fields that are
// set must all hold.
type FilterOptions struct {
	// Key selects exactly one object. It excludes Prefix.
	Key string
	// Prefix selects the keys under it, by whole path segments; see [HasPrefix].
	Prefix string
	// Labels is a label selector in Kubernetes' syntax, such as
	// "app=web,tier in (a,b),!legacy".
	Labels string
	// Fields is a field selector in Kubernetes' syntax, such as
	// "spec.nodeName=n7,status.phase!=Failed". There are no spaces around names;
	// a field that an object does not have counts as "".
	Fields string
	// LabelSelector and FieldSelector are selectors that were parsed before, and
	// hold besides Labels and Fields. Nil restricts nothing; one that selects
	// nothing makes a filter that matches nothing.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	// NoLabels says that the objects never have labels: then selectors of labels are
	// refused with [ErrNoLabels].
	NoLabels bool
}

// everything is the filter without restrictions.
var everything = new(Filter)

// NewFilter makes the filter that opts describe for objects with these columns.
// The error is a [*SelectorError] that names the option at fault; for a field
// that is not declared it wraps an [*UnknownFieldError].
func NewFilter(columns Columns, opts FilterOptions) (*Filter, error) {
	if opts.isZero() {
		return everything, nil
	}
	if err := opts.validateKeys(); err != nil {
		return nil, err
	}
	parsed, err := labels.Parse(opts.Labels)
	if err != nil {
		return nil, &SelectorError{Field: "Labels", Input: opts.Labels, Err: err}
	}
	if err := opts.refuseLabels(parsed); err != nil {
		return nil, err
	}
	filter := &Filter{key: opts.Key, prefix: opts.Prefix}
	filter.requireLabels(parsed)
	filter.requireLabels(opts.LabelSelector)
	if err := filter.parseFields(columns, opts.Fields); err != nil {
		return nil, &SelectorError{Field: "Fields", Input: opts.Fields, Err: err}
	}
	if err := filter.requireFields(columns, opts.FieldSelector); err != nil {
		return nil, &SelectorError{Field: "FieldSelector", Input: opts.FieldSelector.String(), Err: err}
	}
	filter.normalize()
	filter.canonical = filter.canonicalForm()
	return filter, nil
}

// isZero reports whether nothing is set. Selectors must not be compared: their
// types need not be comparable.
func (o *FilterOptions) isZero() bool {
	return o.Key == "" && o.Prefix == "" && o.Labels == "" && o.Fields == "" && o.LabelSelector == nil && o.FieldSelector == nil
}

// refuseLabels returns the error of a selector of labels, LabelSelector or Labels as it was
// parsed, for objects without labels. A selector without requirements selects everything or
// nothing, which needs no labels.
func (o *FilterOptions) refuseLabels(parsed labels.Selector) error {
	if !o.NoLabels {
		return nil
	}
	if !parsed.Empty() {
		return &SelectorError{Field: "Labels", Input: o.Labels, Err: ErrNoLabels}
	}
	if o.LabelSelector == nil {
		return nil
	}
	if requirements, _ := o.LabelSelector.Requirements(); len(requirements) > 0 {
		return &SelectorError{Field: "LabelSelector", Input: o.LabelSelector.String(), Err: ErrNoLabels}
	}
	return nil
}

// parseFields parses and compiles a field selector.
func (f *Filter) parseFields(columns Columns, text string) error {
	parsed, err := fields.ParseSelector(text)
	if err == nil {
		err = validateFieldNames(parsed)
	}
	if err != nil {
		return err
	}
	return f.requireFields(columns, parsed)
}

// Everything reports whether the filter restricts nothing.
func (f *Filter) Everything() bool { return f == nil || f.canonical == "" }

// Nothing reports whether the filter is known to match no object: made
// from a selector that selects nothing, or demanding two values of one
// attribute. Other contradictions are not looked for.
func (f *Filter) Nothing() bool { return f != nil && f.impossible }

// Canonical returns the same string for equivalent filters, independent of the
// order of requirements, repetitions and the ways to write equality ("=", "==",
// "in (one)"). It is "" for everything. Readers with the same string can share an
// evaluation.
func (f *Filter) Canonical() string {
	if f == nil {
		return ""
	}
	return f.canonical
}

// String prints the filter for people.
func (f *Filter) String() string {
	if f.Everything() {
		return "everything"
	}
	return f.canonical
}

// Key returns the only key selected, or "" if there may be several.
func (f *Filter) Key() string {
	if f == nil {
		return ""
	}
	return f.key
}

// Prefix returns the prefix of the keys selected, or "" for any.
func (f *Filter) Prefix() string {
	if f == nil {
		return ""
	}
	return f.prefix
}

// HasSelector reports whether labels or fields restrict the filter.
func (f *Filter) HasSelector() bool {
	return f != nil && (f.impossible || len(f.exact)+len(f.otherFields)+len(f.otherLabels) > 0)
}

// IsOneExact reports whether the one requirement of [Filter.Exact] is all that the filter has,
// besides its key or prefix.
func (f *Filter) IsOneExact() bool {
	return f != nil && len(f.exact) == 1 && len(f.otherFields)+len(f.otherLabels) == 0
}

// Matches reports whether the filter matches the object. No filter matches nil.
// It does not allocate.
func Matches(f *Filter, o *Object) bool {
	if o == nil {
		return false
	}
	return f.Everything() || f.matches(o)
}

// Alike reports, in constant time, whether every filter and index treats a and b
// the same. False does not mean that they differ; it is also returned for nil.
func Alike(a, b *Object) bool {
	return a != nil && b != nil && a.Key == b.Key && SharesAttributes(a, b)
}

// matches evaluates the requirements in order of cost, cheapest first.
func (f *Filter) matches(o *Object) bool {
	return !f.impossible &&
		(f.key == "" || f.key == o.Key) && HasPrefix(o.Key, f.prefix) &&
		f.matchesExact(o) && f.matchesOthers(o)
}

func (f *Filter) matchesExact(o *Object) bool {
	for i := range f.exact {
		r := &f.exact[i]
		if value, held := r.Attribute.Of(o); !held || value != r.Value {
			return false
		}
	}
	return true
}

func (f *Filter) matchesOthers(o *Object) bool {
	for i := range f.otherFields {
		if r := &f.otherFields[i]; o.Field(r.Attribute.Column) == r.Value {
			return false
		}
	}
	for i := range f.otherLabels {
		if !f.otherLabels[i].Matches(o.Labels.matched()) {
			return false
		}
	}
	return true
}
