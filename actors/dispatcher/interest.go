package dispatcher

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

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
	adds   uint64 // numbers the slots
	events uint64 // numbers the events, so that each visits a bucket once
	// found are the slots found for the current event, in that many buckets. It
	// is kept for its capacity.
	found   []*slot
	buckets int
}

// handle is what the owner of a group keeps to remove it.
type handle = *slot

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
	p := &slot{order: i.adds}
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

// candidates visits the groups that may see something of the event: all those
// whose conversion of it yields an event, and possibly others; each once, in the
// order in which they were added. A bookmark concerns all groups and visits none.
// It does not allocate once it has grown. visit must not use the index.
func candidates[G any](i *interest[G], ev store.Event, visit func(G)) {
	if ev.Type == store.Bookmark {
		return
	}
	i.begin()
	if o := ev.Object; o != nil {
		i.gather(o)
	}
	// A change may take the object out of a selection, which the groups that
	// selected the state before are to see.
	if o := ev.Prev; o != nil && !store.Alike(ev.Object, o) {
		i.gather(o)
	}
	i.sort()
	for _, p := range i.found {
		visit(i.groups[p.group])
	}
}

func (i *interest[G]) begin() {
	i.events++
	i.found, i.buckets = i.found[:0], 0
	i.take(i.scan)
}

// gather looks up one state of the object.
func (i *interest[G]) gather(o *store.Object) {
	if len(i.keys) > 0 {
		i.take(i.keys[o.Key])
	}
	if len(i.prefixes) > 0 {
		i.takePrefixes(o.Key)
	}
	i.takeFields(o)
	i.takeLabels(o.Labels)
}

// takeFields looks up the columns that filters ask for.
func (i *interest[G]) takeFields(o *store.Object) {
	for _, v := range i.fields.all {
		i.take(v.table[o.Field(v.attribute.Column)])
	}
}

// takePrefixes looks up each prefix that covers the key: up to every slash,
// without it and with it, and the key itself.
func (i *interest[G]) takePrefixes(key string) {
	for end := range len(key) {
		if key[end] == '/' {
			i.take(i.prefixes[key[:end]])
			i.take(i.prefixes[key[:end+1]])
		}
	}
	i.take(i.prefixes[key])
}

// takeLabels goes through the labels that filters ask for or those that the
// object has, whichever are fewer.
func (i *interest[G]) takeLabels(set labels.Set) {
	if len(i.labels.all) <= len(set) {
		for _, v := range i.labels.all {
			if value, ok := set[v.attribute.Name]; ok {
				i.take(v.table[value])
			}
		}
		return
	}
	for name, value := range set {
		i.take(i.labels.find(store.LabelAttribute(name), value))
	}
}

// take adds the bucket to what was found, once per event.
func (i *interest[G]) take(b *bucket) {
	if b == nil || b.live == 0 || b.seen == i.events {
		return
	}
	b.seen = i.events
	i.buckets++
	i.found = b.appendTo(i.found)
}

// sort puts what was found into the order of adding, which also hides the order
// of map iteration. Within one bucket it is that already.
func (i *interest[G]) sort() {
	if i.buckets > 1 {
		slices.SortFunc(i.found, func(a, b *slot) int { return cmp.Compare(a.order, b.order) })
	}
}
