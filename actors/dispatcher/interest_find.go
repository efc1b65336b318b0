package dispatcher

import (
	"cmp"
	"slices"

	"github.com/watchmill/watchmill/store"
)

// candidates visits the groups that may see something of the event: all those
// whose conversion of it yields an event, and possibly others; each once, in the
// order in which they were added. A bookmark, which concerns everybody, is not
// for asking around: it visits nobody. It does not allocate once it has grown.
// visit must not use the index.
//
// It is a function because what is found does not depend on the type of object.
func candidates[T any, G any](i *interest[G], ev store.Event[T], visit func(G)) {
	if ev.Type == store.Bookmark {
		return
	}
	i.begin()
	if o := ev.Object; o != nil {
		i.gather(o.Key, o.Labels, o.Fields)
	}
	// A change may take the object out of a selection: whoever selected the state
	// before must hear of it.
	if o := ev.Prev; o != nil && !store.Alike(ev.Object, o) {
		i.gather(o.Key, o.Labels, o.Fields)
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
func (i *interest[G]) gather(key string, labels, fields map[string]string) {
	if len(i.keys) > 0 {
		i.take(i.keys[key])
	}
	if len(i.prefixes) > 0 {
		i.takePrefixes(key)
	}
	for name, b := range i.blanks {
		if fields[name] == "" {
			i.take(b)
		}
	}
	i.takeAttributes(&i.fields, fields)
	i.takeAttributes(&i.labels, labels)
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

// takeAttributes goes through the names that somebody asks about or those that
// the object has, whichever are fewer.
func (i *interest[G]) takeAttributes(a *attributes, set map[string]string) {
	if len(a.all) <= len(set) {
		for _, v := range a.all {
			if value, ok := set[v.name]; ok {
				i.take(v.table[value])
			}
		}
		return
	}
	for name, value := range set {
		i.take(a.find(name, value))
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
		slices.SortFunc(i.found, func(a, b *place) int { return cmp.Compare(a.order, b.order) })
	}
}
