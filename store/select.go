package store

import "iter"

// Select returns the objects of the view that the filter matches, in key order,
// with keys greater than after. It reads the narrowest part of the view that can
// have them: the one key, the first index that the filter fixes to a value, or
// the prefix.
func Select(v *TreeView, f *Filter, after string) iter.Seq[*Object] {
	if key := f.Key(); key != "" {
		return selectKey(v, f, after)
	}
	candidates := v.All(f.Prefix(), after)
	for _, r := range f.Exact() {
		if !v.Indexed(r.Attribute) {
			continue
		}
		byIndex, err := v.ByIndex(r.Attribute, r.Value, f.Prefix(), after)
		if err != nil {
			continue
		}
		if f.fixesOnly(r) {
			return byIndex
		}
		candidates = byIndex
		break
	}
	if !f.HasSelector() {
		return candidates
	}
	return func(yield func(*Object) bool) {
		for o := range candidates {
			if Matches(f, o) && !yield(o) {
				return
			}
		}
	}
}

func selectKey(v *TreeView, f *Filter, after string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		if o := v.Get(f.Key()); o != nil && o.Key > after && Matches(f, o) {
			yield(o)
		}
	}
}

// WithValue returns the objects among all whose attribute a has value, like
// [TreeView.ByIndex], but by a scan.
func WithValue(all iter.Seq[*Object], a Attribute, value string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for o := range all {
			if got, held := valueIn(a, o); held && got == value && !yield(o) {
				return
			}
		}
	}
}
