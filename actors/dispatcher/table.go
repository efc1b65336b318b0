package dispatcher

import "github.com/watchmill/watchmill/store"

// table files buckets under a string. It holds no empty bucket.
type table map[string]*bucket

// obtain returns the bucket under the name, made if need be.
func (t table) obtain(name string) *bucket {
	b := t[name]
	if b == nil {
		b = &bucket{emptied: func() { delete(t, name) }}
		t[name] = b
	}
	return b
}

// attributes files buckets under the names and values of one kind of attribute.
type attributes struct {
	byAttribute map[store.Attribute]*values
	// all are the members of byAttribute, to walk them fast and in the same order
	// every time.
	all []*values
}

// values files buckets under the values of one attribute. It is there as long
// as it has any.
type values struct {
	attribute store.Attribute
	at        int // in attributes.all
	table     table
}

func newAttributes() attributes { return attributes{byAttribute: map[store.Attribute]*values{}} }

// find returns the bucket under an attribute and a value, or nil.
func (a *attributes) find(attribute store.Attribute, value string) *bucket {
	if v := a.byAttribute[attribute]; v != nil {
		return v.table[value]
	}
	return nil
}

// obtain returns the bucket under an attribute and a value, made if need be.
func (a *attributes) obtain(attribute store.Attribute, value string) *bucket {
	v := a.byAttribute[attribute]
	if v == nil {
		v = &values{attribute: attribute, at: len(a.all), table: table{}}
		a.byAttribute[attribute] = v
		a.all = append(a.all, v)
	}
	b := v.table[value]
	if b == nil {
		b = &bucket{emptied: func() { a.drop(v, value) }}
		v.table[value] = b
	}
	return b
}

// drop takes out an empty bucket, and its attribute with the last one.
func (a *attributes) drop(v *values, value string) {
	delete(v.table, value)
	if len(v.table) > 0 {
		return
	}
	delete(a.byAttribute, v.attribute)
	last := len(a.all) - 1
	a.all[v.at] = a.all[last]
	a.all[v.at].at = v.at
	a.all[last] = nil
	a.all = a.all[:last]
}
