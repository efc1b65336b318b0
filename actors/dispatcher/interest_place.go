package dispatcher

import (
	"cmp"
	"math"
	"slices"

	"github.com/watchmill/watchmill/store"
)

// place puts a group, whose first slot is h, into buckets of which each state that the
// filter matches is looked up in at least one.
func (i *interest[G]) place(h *slot, f *store.Filter) {
	buckets := i.demanded(f)
	if buckets == nil {
		buckets = []*bucket{i.excluded(h, f.Exclusions())}
	}
	buckets[0].add(h)
	for _, b := range buckets[1:] {
		h.more = &slot{group: h.group, order: h.order, more: h.more}
		b.add(h.more)
	}
}

// demanded returns the buckets of what the filter demands, nil if it demands nothing: a
// state that the filter matches is looked up in at least one of them.
func (i *interest[G]) demanded(f *store.Filter) []*bucket {
	if f.Key() != "" {
		return []*bucket{i.keys.obtain(f.Key())}
	}
	if exact := f.Exact(); len(exact) > 0 {
		r := i.mostSelective(exact)
		return []*bucket{i.attributes(r.Attribute.Kind).obtain(r.Attribute, r.Value)}
	}
	present, some := i.fewestPresent(f.Present())
	switch {
	case some && len(present.Values) > 0:
		return i.obtainEach(present)
	case f.Prefix() != "":
		return []*bucket{i.prefixes.obtain(f.Prefix())}
	case some:
		return []*bucket{i.labels.obtainPresent(store.LabelAttribute(present.Label))}
	}
	return nil
}

// excluded returns the bucket of one of the exclusions that the filter of h has, or that
// of the groups that are found for every event.
func (i *interest[G]) excluded(h *slot, all []store.Exclusion) *bucket {
	if len(all) == 0 {
		return i.scan
	}
	for _, x := range all {
		h.excluded = append(h.excluded, i.exclusions.obtain(x))
	}
	x := mostShared(h.excluded)
	if x.live == 0 {
		i.exclusions.activate(x)
	}
	return &x.bucket
}

// mostSelective chooses the requirement with the fewest groups in its bucket, fields
// before labels if there are several. So the index adapts to the data: a namespace
// that all groups require is chosen only for the first.
func (i *interest[G]) mostSelective(exact []store.Requirement) store.Requirement {
	return slices.MinFunc(exact, func(a, b store.Requirement) int {
		return cmp.Compare(i.groupsUnder(a), i.groupsUnder(b))
	})
}

// groupsUnder is the number of groups in the requirement's bucket. An empty value of a field
// counts as the most, since most objects may have it.
func (i *interest[G]) groupsUnder(r store.Requirement) int {
	if blank(r) {
		return math.MaxInt
	}
	return i.attributes(r.Attribute.Kind).find(r.Attribute, r.Value).size()
}

func blank(r store.Requirement) bool {
	return r.Attribute.Kind == store.Field && r.Value == ""
}

func (i *interest[G]) attributes(kind store.AttributeKind) *attributes {
	if kind == store.Label {
		return &i.labels
	}
	return &i.fields
}

// fewestPresent chooses, of labels that must be there, the one with the fewest groups in
// its buckets.
func (i *interest[G]) fewestPresent(all []store.Presence) (store.Presence, bool) {
	if len(all) == 0 {
		return store.Presence{}, false
	}
	return slices.MinFunc(all, func(a, b store.Presence) int {
		return cmp.Compare(i.groupsWith(a), i.groupsWith(b))
	}), true
}

// groupsWith is the number of groups in the label's buckets. A label that may have any
// value counts as more than those with values, since more objects may have it.
func (i *interest[G]) groupsWith(p store.Presence) int {
	if len(p.Values) == 0 {
		return math.MaxInt/2 + i.labels.withAny(store.LabelAttribute(p.Label)).size()
	}
	groups := 0
	for _, value := range p.Values {
		groups += i.labels.find(store.LabelAttribute(p.Label), value).size()
	}
	return groups
}

// obtainEach returns the bucket of each value.
func (i *interest[G]) obtainEach(p store.Presence) []*bucket {
	all := make([]*bucket, len(p.Values))
	for n, value := range p.Values {
		all[n] = i.labels.obtain(store.LabelAttribute(p.Label), value)
	}
	return all
}
