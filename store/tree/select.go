package tree

import (
	"iter"

	"github.com/watchmill/watchmill/store"
)

// Select returns the objects of the view that the filter matches, in key order,
// with keys greater than after. It reads the narrowest part of the view that can
// have them: the one key, the first index that the filter fixes to a value, or
// the prefix. For a filter that matches nothing it reads nothing.
func Select(v *View, f *store.Filter, after string) iter.Seq[*store.Object] {
	c := CandidatesOf(v, f, after)
	if c.Match {
		return c.Objects
	}
	return func(yield func(*store.Object) bool) {
		for o := range c.Objects {
			if store.Matches(f, o) && !yield(o) {
				return
			}
		}
	}
}

// Candidates are the objects that [Select] reads to find those that a filter matches.
type Candidates struct {
	// Objects are in key order.
	Objects iter.Seq[*store.Object]
	// Index is the index that they are read from; its Kind is zero if they are read from
	// none.
	Index store.Attribute
	// Match: the filter matches them all, so [store.Matches] need not be asked.
	Match bool
}

// CandidatesOf returns what [Select] reads of the view.
func CandidatesOf(v *View, f *store.Filter, after string) Candidates {
	switch {
	case f.Nothing():
		return Candidates{Objects: func(func(*store.Object) bool) {}, Match: true}
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
func oneKey(v *View, key, after string) iter.Seq[*store.Object] {
	return func(yield func(*store.Object) bool) {
		if o := v.Get(key); o != nil && key > after {
			yield(o)
		}
	}
}

// WithValue returns the objects among all whose attribute a has value, like
// [View.ByIndex], but by a scan.
func WithValue(all iter.Seq[*store.Object], a store.Attribute, value string) iter.Seq[*store.Object] {
	return func(yield func(*store.Object) bool) {
		for o := range all {
			if got, held := a.Of(o); held && got == value && !yield(o) {
				return
			}
		}
	}
}
