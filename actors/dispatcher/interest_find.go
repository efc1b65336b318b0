package dispatcher

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// candidates visits the groups that may see something of the event: all those
// whose conversion of it yields an event, and possibly others; each once, in the
// order in which they were added. A bookmark, which concerns everybody, is not
// for asking around: it visits nobody. It does not allocate once it has grown.
// visit must not use the index.
func candidates[G any](i *interest[G], ev store.Event, visit func(G)) {
	if ev.Type == store.Bookmark {
		return
	}
	i.begin()
	if o := ev.Object; o != nil {
		i.gather(o)
	}
	// A change may take the object out of a selection: whoever selected the state
	// before must hear of it.
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
		slices.SortFunc(i.found, func(a, b *place) int { return cmp.Compare(a.order, b.order) })
	}
}
