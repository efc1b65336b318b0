package dispatcher

import (
	"cmp"
	"slices"

	"github.com/watchmill/watchmill/store"
)

// interest is an index of groups of watches by their filters. Each group is in the
// buckets of one requirement of its filter, the first kind that it has:
//
//	key             its one key
//	fields, labels  an attribute that has a value, or a label that has one of several
//	prefix          its prefix
//	labels          a label that is present
//	exclusions      a value or a label that must be absent
//	scan            nothing at all: it is found for every event
//
// An event is looked up by its key, the prefixes of its key, its attributes, and
// those of the previous state. So the cost depends on the event and on the matches,
// not on the number of groups. Only exclusions are evaluated one by one, each once an event.
// Groups without a filter do not belong here, since every event would find them.
//
// It belongs to one goroutine.
type interest[G any] struct {
	keys, prefixes table
	fields, labels attributes
	exclusions     exclusions
	scan           *bucket

	groups []G
	free   []int  // the numbers of groups that were removed
	adds   uint64 // numbers the slots
	events uint64 // numbers the events, so that each visits a bucket once
	// found are the slots found for the current event, in that many buckets. It is
	// reused between events.
	found   []*slot
	buckets int
	// ofObject are the labels of one object. It is reused.
	ofObject []store.LabelPair
}

// handle identifies a group for remove.
type handle = *slot

func newInterest[G any]() *interest[G] {
	return &interest[G]{
		keys:       table{},
		prefixes:   table{},
		fields:     newAttributes(),
		labels:     newAttributes(),
		exclusions: exclusions{byText: map[string]*exclusion{}},
		scan:       &bucket{emptied: func() {}},
	}
}

// add adds a group with its filter. No event finds a group whose filter matches
// nothing.
func (i *interest[G]) add(f *store.Filter, g G) handle {
	i.adds++
	h := &slot{group: i.number(g), order: i.adds}
	if !f.Nothing() {
		i.place(h, f)
	}
	return h
}

// number gives the group a number that is free.
func (i *interest[G]) number(g G) int {
	last := len(i.free) - 1
	if last < 0 {
		i.groups = append(i.groups, g)
		return len(i.groups) - 1
	}
	n := i.free[last]
	i.free = i.free[:last]
	i.groups[n] = g
	return n
}

// remove removes a group. Removing it again has no effect.
func (i *interest[G]) remove(h handle) {
	if h.group == noGroup {
		return
	}
	for p := h; p != nil; p = p.more {
		if p.in != nil {
			p.in.remove(p)
		}
	}
	for _, x := range h.excluded {
		i.exclusions.release(x)
	}
	var none G
	i.groups[h.group] = none
	i.free = append(i.free, h.group)
	h.group = noGroup
}

// candidates visits the groups that may match the event, each once, in the order in
// which they were added: all whose conversion of it yields an event, and possibly
// others. It visits none for a bookmark, which is for all groups. It does not
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
	i.takeExclusions(o)
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
func (i *interest[G]) takeLabels(all store.Labels) {
	if len(i.labels.all) <= all.Len() {
		for _, v := range i.labels.all {
			if value, ok := all.Lookup(v.attribute.Name); ok {
				i.take(v.table[value])
				i.take(v.present)
			}
		}
		return
	}
	i.ofObject = all.AppendTo(i.ofObject[:0])
	for _, l := range i.ofObject {
		if v := i.labels.byAttribute[store.LabelAttribute(l.Name)]; v != nil {
			i.take(v.table[l.Value])
			i.take(v.present)
		}
	}
}

// takeExclusions takes the groups of each exclusion that the object meets. An exclusion
// with one group is not evaluated: evaluating the filter of that group costs no more.
func (i *interest[G]) takeExclusions(o *store.Object) {
	for _, x := range i.exclusions.active {
		if x.seen != i.events && (x.live == 1 || x.Meets(o)) {
			i.take(&x.bucket)
		}
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
// iteration, and drops repetitions: a group can be in several buckets. The slots of one
// bucket are sorted already.
func (i *interest[G]) sort() {
	if i.buckets > 1 {
		slices.SortFunc(i.found, func(a, b *slot) int { return cmp.Compare(a.order, b.order) })
		i.found = slices.CompactFunc(i.found, func(a, b *slot) bool { return a.order == b.order })
	}
}
