package dispatcher

import (
	"cmp"
	"math"
	"slices"

	"github.com/watchmill/watchmill/store"
)

// interest knows which groups of watchers an event may concern, without asking
// them. Each group is filed in one place, the most selective that its filter
// offers:
//
//	key             the one key that it wants
//	fields, labels  an attribute value that it demands
//	prefix          its prefix
//	scan            none of these: it is found for every event
//
// An event looks up what it has: its key, the prefixes of its key, its
// attributes, and those of the state before. So its cost depends on itself and
// on what is found, not on how many groups there are. Groups that want
// everything do not belong here; they would be found for every event.
//
// It belongs to one goroutine.
type interest[G any] struct {
	keys, prefixes table
	fields, labels attributes
	scan           *bucket

	groups []G
	free   []int  // the numbers of groups that were removed
	adds   uint64 // numbers the places
	events uint64 // numbers the events, so that each visits a bucket once
	// found are the places found for the current event, in that many buckets. It
	// is kept for its capacity.
	found   []*place
	buckets int
}

// handle is what the owner of a group keeps to remove it.
type handle = *place

func newInterest[G any]() *interest[G] {
	return &interest[G]{
		keys:     table{},
		prefixes: table{},
		fields:   newAttributes(),
		labels:   newAttributes(),
		scan:     &bucket{emptied: func() {}},
	}
}

// add files the group under the filter. One that matches nothing is found for
// no event.
func (i *interest[G]) add(f *store.Filter, g G) handle {
	i.adds++
	p := &place{order: i.adds}
	if last := len(i.free) - 1; last >= 0 {
		p.group, i.free = i.free[last], i.free[:last]
		i.groups[p.group] = g
	} else {
		p.group, i.groups = len(i.groups), append(i.groups, g)
	}
	if !f.Nothing() {
		i.bucketFor(f).add(p)
	}
	return p
}

// remove takes out what add filed. Removing it again does nothing.
func (i *interest[G]) remove(h handle) {
	if h.group == noGroup {
		return
	}
	if h.in != nil {
		h.in.remove(h)
	}
	var none G
	i.groups[h.group] = none
	i.free = append(i.free, h.group)
	h.group = noGroup
}

// len returns the number of groups.
func (i *interest[G]) len() int { return len(i.groups) - len(i.free) }

func (i *interest[G]) bucketFor(f *store.Filter) *bucket {
	switch exact := f.Exact(); {
	case f.Key() != "":
		return i.keys.obtain(f.Key())
	case len(exact) > 0:
		return i.obtain(i.mostSelective(exact))
	case f.Prefix() != "":
		return i.prefixes.obtain(f.Prefix())
	}
	return i.scan
}

// mostSelective chooses the requirement that fewest groups are filed under,
// fields before labels if there are several. That learns which attribute tells
// groups apart: the bucket of a namespace that all of them demand fills up after
// the first.
func (i *interest[G]) mostSelective(exact []store.Requirement) store.Requirement {
	return slices.MinFunc(exact, func(a, b store.Requirement) int {
		return cmp.Compare(i.crowd(a), i.crowd(b))
	})
}

// crowd is the number of groups filed under the requirement. A blank field is
// the last choice: most objects may have it.
func (i *interest[G]) crowd(r store.Requirement) int {
	if blank(r) {
		return math.MaxInt
	}
	if b := i.attributes(r.Attribute.Kind).find(r.Attribute, r.Value); b != nil {
		return b.live
	}
	return 0
}

func (i *interest[G]) obtain(r store.Requirement) *bucket {
	return i.attributes(r.Attribute.Kind).obtain(r.Attribute, r.Value)
}

func (i *interest[G]) attributes(kind store.AttributeKind) *attributes {
	if kind == store.Label {
		return &i.labels
	}
	return &i.fields
}

func blank(r store.Requirement) bool {
	return r.Attribute.Kind == store.Field && r.Value == ""
}
