package store

import (
	"slices"
)

// recordView is a [StoreView] without the type of its items. It is immutable.
type recordView struct{ parts recordParts }

// recordParts is a *[records], as an interface for the reason of [viewParts].
type recordParts interface{ isRecords() }

func (*records) isRecords() {}

// recordsOf is not a method, so that users' packages do not compile its result
// type.
func recordsOf(v *recordView) *records { return v.parts.(*records) }

func (v *recordView) len() int { return recordsOf(v).items.Len() }

func (v *recordView) lastRevision() Revision { return recordsOf(v).revision }

func (v *recordView) get(key string) (item any, exists bool) { return recordsOf(v).get(key) }

// from calls yield with the keys and items from a key on, in order, until it
// returns false.
func (v *recordView) from(key string, yield func(key string, item any) bool) {
	var scan scan
	recordsOf(v).items.Ascend(key, func(key string, c *record) bool {
		scan.step()
		return yield(key, c.item)
	})
}

func (v *recordView) keys() []string { return recordsOf(v).items.Keys() }

// withValue calls yield with the keys and items that have value in an index, in
// order, until it returns false.
func (v *recordView) withValue(index int, value string, yield func(key string, item any) bool) {
	r := recordsOf(v)
	r.indexes[index].ascend(value, "", func(key string, _ struct{}) bool {
		item, _ := r.get(key)
		return yield(key, item)
	})
}

// keysWithValues returns the keys that have one of the values in an index, each
// once, in order.
func (v *recordView) keysWithValues(index int, values ...string) (keys []string) {
	for _, value := range values {
		recordsOf(v).indexes[index].ascend(value, "", func(key string, _ struct{}) bool {
			keys = append(keys, key)
			return true
		})
	}
	if len(values) > 1 {
		slices.Sort(keys)
	}
	return slices.Compact(keys)
}

func (v *recordView) index(name string) (int, error) { return recordsOf(v).index(name) }

// function returns the function of an index.
func (v *recordView) functions() []indexFunction { return recordsOf(v).functions }

// values returns the values that any item has in an index, in order.
func (v *recordView) values(index int) []string { return recordsOf(v).indexes[index].values() }
