package dispatcher

import "github.com/watchmill/watchmill/store"

// bucket holds the groups of one entry of the interest index, in the order in which
// they were added. A removed group leaves a hole; when half of the slots are holes
// the bucket is compacted. So adding and removing cost O(1) amortised and keep the
// order.
type bucket struct {
	slots []*slot
	live  int
	// seen is the number of the last event that matched the bucket.
	seen uint64
	// emptied removes the bucket from its table when it becomes empty.
	emptied func()
}

// slot is a group's entry in a bucket.
type slot struct {
	// more is the group's entry in another bucket, nil after the last.
	more *slot
	// excluded are the exclusions of the group's filter, if it is under one of them.
	excluded []*exclusion
	// group is the group's number in the index; noGroup once it was removed.
	group int
	// order is the number of the add that made the slot.
	order uint64
	// in is nil for groups that no event can match.
	in *bucket
	at int
}

const noGroup = -1

func (b *bucket) add(p *slot) {
	p.in, p.at = b, len(b.slots)
	b.slots = append(b.slots, p)
	b.live++
}

// size is the number of groups in a bucket, none if there is no bucket.
func (b *bucket) size() int {
	if b == nil {
		return 0
	}
	return b.live
}

func (b *bucket) remove(p *slot) {
	b.slots[p.at], p.in = nil, nil
	b.live--
	switch {
	case b.live == 0:
		b.slots = nil
		b.emptied()
	case b.live <= len(b.slots)/2:
		b.compact()
	}
}

func (b *bucket) compact() {
	slots := make([]*slot, 0, b.live)
	for _, p := range b.slots {
		if p != nil {
			p.at = len(slots)
			slots = append(slots, p)
		}
	}
	b.slots = slots
}

// appendTo appends the bucket's slots in use to dst.
func (b *bucket) appendTo(dst []*slot) []*slot {
	for _, p := range b.slots {
		if p != nil {
			dst = append(dst, p)
		}
	}
	return dst
}

// table is the non-empty buckets by a string.
type table map[string]*bucket

// obtain returns the bucket under the name, creating it if necessary.
func (t table) obtain(name string) *bucket {
	b := t[name]
	if b == nil {
		b = &bucket{emptied: func() { delete(t, name) }}
		t[name] = b
	}
	return b
}

// attributes is the buckets by the names and values of one kind of attribute.
type attributes struct {
	byAttribute map[store.Attribute]*values
	// all are the members of byAttribute, to iterate fast and in the same order
	// every time.
	all []*values
}

// values is the buckets by the values of one attribute. It exists only while it
// has any.
type values struct {
	attribute store.Attribute
	at        int // in attributes.all
	table     table
	// present holds the groups that require the attribute with any value; nil if there
	// are none.
	present *bucket
}

func newAttributes() attributes { return attributes{byAttribute: map[store.Attribute]*values{}} }

// find returns the bucket under an attribute and a value, or nil.
func (a *attributes) find(attribute store.Attribute, value string) *bucket {
	if v := a.byAttribute[attribute]; v != nil {
		return v.table[value]
	}
	return nil
}

// withAny returns the bucket under an attribute with any value, or nil.
func (a *attributes) withAny(attribute store.Attribute) *bucket {
	if v := a.byAttribute[attribute]; v != nil {
		return v.present
	}
	return nil
}

// obtain returns the bucket under an attribute and a value, creating it if necessary.
func (a *attributes) obtain(attribute store.Attribute, value string) *bucket {
	v := a.valuesOf(attribute)
	b := v.table[value]
	if b == nil {
		b = &bucket{emptied: func() {
			delete(v.table, value)
			a.drop(v)
		}}
		v.table[value] = b
	}
	return b
}

// obtainPresent returns the bucket under an attribute with any value, creating it if
// necessary.
func (a *attributes) obtainPresent(attribute store.Attribute) *bucket {
	v := a.valuesOf(attribute)
	if v.present == nil {
		v.present = &bucket{emptied: func() {
			v.present = nil
			a.drop(v)
		}}
	}
	return v.present
}

// valuesOf returns the buckets under an attribute, which the caller adds to.
func (a *attributes) valuesOf(attribute store.Attribute) *values {
	v := a.byAttribute[attribute]
	if v == nil {
		v = &values{attribute: attribute, at: len(a.all), table: table{}}
		a.byAttribute[attribute] = v
		a.all = append(a.all, v)
	}
	return v
}

// drop removes an attribute that has no buckets left.
func (a *attributes) drop(v *values) {
	if len(v.table) > 0 || v.present != nil {
		return
	}
	delete(a.byAttribute, v.attribute)
	last := len(a.all) - 1
	a.all[v.at] = a.all[last]
	a.all[v.at].at = v.at
	a.all[last] = nil
	a.all = a.all[:last]
}
