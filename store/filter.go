package store

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Filter says which objects a reader wants: those with the one key, under the
// prefix, and passing every requirement on labels and fields.
//
// A filter is immutable and safe for concurrent use. A nil *Filter wants
// everything. It runs no code of the selectors that it was made from: they are
// taken apart once, so matching is a few map look-ups and cannot panic.
type Filter struct {
	key, prefix string
	// exact are the requirements that an index can answer, sorted and one per
	// attribute; otherFields, all of them "!=", and otherLabels are the rest.
	exact       []Requirement
	otherFields []fields.Requirement
	otherLabels []labels.Requirement
	// impossible: the requirements contradict each other.
	impossible bool
	// canonical is "" for everything and for nothing else.
	canonical string
}

// Requirement demands that an attribute has exactly this value.
type Requirement struct {
	Attribute Attribute
	Value     string
}

// FilterOptions describes a [Filter]. The zero value wants everything; what is
// set must all hold.
type FilterOptions struct {
	// Key wants exactly one object. It excludes Prefix.
	Key string
	// Prefix wants the keys under it, by whole path segments; see [HasPrefix].
	Prefix string
	// Labels is a label selector in Kubernetes' syntax, such as
	// "app=web,tier in (a,b),!legacy".
	Labels string
	// Fields is a field selector in Kubernetes' syntax, such as
	// "spec.nodeName=n7,status.phase!=Failed". There are no spaces around names;
	// a field that an object does not have counts as "".
	Fields string
}

// everything is the filter of all who want everything, as most do.
var everything = FilterFor("", "", nil, nil)

// NewFilter makes the filter that opts describe, or returns a
// [*SelectorError] that names the option at fault.
func NewFilter(opts FilterOptions) (*Filter, error) {
	if opts == (FilterOptions{}) {
		return everything, nil
	}
	if err := opts.validateKeys(); err != nil {
		return nil, err
	}
	l, err := labels.Parse(opts.Labels)
	if err != nil {
		return nil, &SelectorError{Field: "Labels", Input: opts.Labels, Err: err}
	}
	f, err := fields.ParseSelector(opts.Fields)
	if err == nil {
		err = validateFieldNames(f)
	}
	if err != nil {
		return nil, &SelectorError{Field: "Fields", Input: opts.Fields, Err: err}
	}
	return FilterFor(opts.Key, opts.Prefix, l, f), nil
}

// FilterFor makes a filter from parts that have been parsed. Empty strings and
// nil selectors restrict nothing. A key or a prefix that no object can have
// makes a filter that matches none.
func FilterFor(key, prefix string, l labels.Selector, f fields.Selector) *Filter {
	filter := &Filter{key: key, prefix: prefix}
	filter.requireLabels(l)
	filter.requireFields(f)
	filter.settle()
	filter.canonical = filter.canonicalForm()
	return filter
}

// Everything reports whether the filter restricts nothing.
func (f *Filter) Everything() bool { return f == nil || f.canonical == "" }

// Nothing reports whether the filter was recognised to match no object: made
// from a selector that selects nothing, or demanding two values of one
// attribute. Other contradictions are not looked for.
func (f *Filter) Nothing() bool { return f != nil && f.impossible }

// Canonical returns the same string for all filters that select the same, as
// far as their syntax shows: the order of requirements, repetitions and the
// ways to write equality ("=", "==", "in (one)") make no difference. It is ""
// for everything. Readers with the same one can share an evaluation.
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

// Key returns the only key wanted, or "" if there may be several.
func (f *Filter) Key() string {
	if f == nil {
		return ""
	}
	return f.key
}

// Prefix returns the prefix of the keys wanted, or "" for any.
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

// Exact returns the requirements that an index on the attribute answers: fields
// first, then labels, each by name, at most one per attribute. Every object
// that matches has all of these values.
//
// Mind those with an empty value: an object without the field has it, an object
// without the label does not. The slice is shared; do not change it.
func (f *Filter) Exact() []Requirement {
	if f == nil {
		return nil
	}
	return f.exact
}

// fixesOnly reports whether r is all that the filter demands, but for the key.
func (f *Filter) fixesOnly(r Requirement) bool {
	return !f.impossible && len(f.exact) == 1 && f.exact[0] == r && len(f.otherFields)+len(f.otherLabels) == 0
}

// Matches reports whether the filter wants the object. A nil object is wanted
// by none. It does not allocate.
func Matches[T any](f *Filter, o *Object[T]) bool {
	if o == nil {
		return false
	}
	return f.Everything() || f.matches(o.Key, o.Labels, o.Fields)
}

// Alike reports whether a and b are seen at once to be the same to every filter
// and index: what is true of one holds for the other. False does not say that
// they differ, nor does it for nil.
func Alike[T any](a, b *Object[T]) bool {
	return a != nil && b != nil && a.Key == b.Key && a.SharesAttributes(b)
}

// matches asks in the order of cost, cheapest first.
func (f *Filter) matches(key string, l labels.Set, fs fields.Set) bool {
	return !f.impossible &&
		(f.key == "" || f.key == key) && HasPrefix(key, f.prefix) &&
		f.matchesExact(l, fs) && f.matchesOthers(l, fs)
}

func (f *Filter) matchesExact(l labels.Set, fs fields.Set) bool {
	for i := range f.exact {
		r := &f.exact[i]
		if r.Attribute.Kind == Field {
			if fs[r.Attribute.Name] != r.Value {
				return false
			}
		} else if value, ok := l[r.Attribute.Name]; !ok || value != r.Value {
			return false
		}
	}
	return true
}

func (f *Filter) matchesOthers(l labels.Set, fs fields.Set) bool {
	for i := range f.otherFields {
		if r := &f.otherFields[i]; fs[r.Field] == r.Value {
			return false
		}
	}
	for i := range f.otherLabels {
		if !f.otherLabels[i].Matches(l) {
			return false
		}
	}
	return true
}
