package store

import "iter"

// Select returns the objects of the view that the filter matches, in key order,
// with keys greater than after. It reads the narrowest part of the view that can
// have them: the one key, the first index that the filter fixes to a value, or
// the prefix. For a filter that matches nothing it reads nothing.
func Select(v *TreeView, f *Filter, after string) iter.Seq[*Object] {
	c := CandidatesOf(v, f, after)
	if c.Match {
		return c.Objects
	}
	return func(yield func(*Object) bool) {
		for o := range c.Objects {
			if Matches(f, o) && !yield(o) {
				return
			}
		}
	}
}

// Candidates are the objects that [Select] reads to find those that a filter matches.
type Candidates struct {
	// Objects are in key order.
	Objects iter.Seq[*Object]
	// Index is the index that they are read from; its Kind is zero if they are read from
	// none.
	Index Attribute
	// Match: the filter matches them all, so [Matches] need not be asked.
	Match bool
}

// CandidatesOf returns what [Select] reads of the view.
func CandidatesOf(v *TreeView, f *Filter, after string) Candidates {
	switch {
	case f.Nothing():
		return Candidates{Objects: func(func(*Object) bool) {}, Match: true}
	case f.Key() != "":
		return Candidates{Objects: oneKey(v, f.Key(), after)}
	}
	for _, r := range f.Exact() {
		if i := indexOf(v, r.Attribute); i >= 0 {
			return Candidates{Objects: withValue(v, i, r.Value, f.Prefix(), after), Index: r.Attribute, Match: f.IsOneExact()}
		}
	}
	return Candidates{Objects: v.All(f.Prefix(), after), Match: !f.HasSelector()}
}

// oneKey returns the object under key, if key is greater than after.
func oneKey(v *TreeView, key, after string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		if o := v.Get(key); o != nil && key > after {
			yield(o)
		}
	}
}

// WithValue returns the objects among all whose attribute a has value, like
// [TreeView.ByIndex], but by a scan.
func WithValue(all iter.Seq[*Object], a Attribute, value string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for o := range all {
			if got, held := a.Of(o); held && got == value && !yield(o) {
				return
			}
		}
	}
}
