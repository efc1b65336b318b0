package dispatcher

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// interest is an index of groups of watches by their filters. Each group has one
// entry, under the most selective requirement of its filter:
//
//	key             its one key
//	fields, labels  a required attribute value
//	prefix          its prefix
//	scan            none of these: it is found for every event
//
// An event is looked up by its key, the prefixes of its key, its attributes, and
// those of the previous state. So the cost depends on the event and on the matches,
// not on the number of groups. Groups without a filter do not belong here, since
// every event would find them.
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
	// found are the slots found for the current event, in that many buckets. It is
	// reused between events.
	found   []*slot
	buckets int
}

// handle identifies a group for remove.
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

// add adds a group with its filter. No event finds a group whose filter matches
// nothing.
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

// remove removes a group. Removing it again has no effect.
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

// mostSelective chooses the requirement with the fewest groups in its bucket, fields
// before labels if there are several. So the index adapts to the data: a namespace
// that all groups require is chosen only for the first.
func (i *interest[G]) mostSelective(exact []store.Requirement) store.Requirement {
	return slices.MinFunc(exact, func(a, b store.Requirement) int {
		return cmp.Compare(i.crowd(a), i.crowd(b))
	})
}

// crowd is the number of groups in the requirement's bucket. A blank field is the
// last choice, since most objects may have it.
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

// candidates visits the groups that may match the event: all those whose conversion
// of it yields an event, and possibly others; each once, in the order in which they
// were added. It visits none for a bookmark, which is for all groups. It does not
// allocate in the steady state. visit must not use the index.
func candidates[G any](i *interest[G], ev store.Event, visit func(G)) {
	if ev.Type == store.Bookmark {
		return
	}
	i.begin()
	if o := ev.Object; o != nil {
		i.gather(o)
	}
	// A change may take the object out of a selection; groups that matched the
	// previous state must see that.
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

// takeFields looks up the columns that filters require.
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

// takeLabels iterates over the labels that filters require or those that the object
// has, whichever are fewer.
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

// take adds the bucket's slots to found, once per event.
func (i *interest[G]) take(b *bucket) {
	if b == nil || b.live == 0 || b.seen == i.events {
		return
	}
	b.seen = i.events
	i.buckets++
	i.found = b.appendTo(i.found)
}

// sort sorts found into the order of adding, which makes it independent of map
// iteration. The slots of one bucket are sorted already.
func (i *interest[G]) sort() {
	if i.buckets > 1 {
		slices.SortFunc(i.found, func(a, b *slot) int { return cmp.Compare(a.order, b.order) })
	}
}
