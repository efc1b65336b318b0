package cache

import (
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/indexed"
)

// records are the contents of a [ThreadSafeStore]. It does not depend on the type
// of the items, so that it and its B-trees are compiled once, with this package.
type records struct {
	indexed.Map[*record]
	// functions are those of the indexes, in their order.
	functions []indexFunction
	revision  store.Revision
	// views is how many were taken.
	views uint64
}

// record is an item with the values that it had in each index when it was stored,
// in the order of the indexes, so that it can be removed from the indexes even if
// it was changed in place.
type record struct {
	item   any
	values [][]string
	// views is how many views had been taken when the record was made. The later
	// ones share it, so it must not change once there are any.
	views uint64
}

// indexFunction is an index's name and its function, as it was given and without
// its type.
type indexFunction struct {
	name   string
	given  any
	values func(item any) ([]string, error)
}

// of computes the item's values.
func (f indexFunction) of(key string, item any) ([]string, error) {
	values, err := f.values(item)
	if err != nil {
		return nil, &IndexFuncError{Index: f.name, Key: key, Err: err}
	}
	return values, nil
}

// index finds an index. There are few, so a linear search is fastest.
func (r *records) index(name string) (i int, err error) {
	for i, f := range r.functions {
		if f.name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w %q: add it with AddIndexers", store.ErrUnknownIndex, name)
}

func newRecords(functions []indexFunction) *records {
	return &records{Map: indexed.New[*record](len(functions)), functions: functions}
}

// view returns an immutable copy, in constant time.
func (r *records) view() *records {
	r.views++
	return &records{Map: r.Map.View(), functions: r.functions, revision: r.revision}
}

// put stores item under key in place of prev, which is nil if the key is new, and
// its values in the indexes.
func (r *records) put(key string, prev *record, item any, values [][]string) {
	for i, index := range r.Indexes {
		moveKey(index, key, prev.valuesOf(i), values[i])
	}
	if prev != nil && prev.views == r.views {
		prev.item, prev.values = item, values // no view has it
		return
	}
	r.Items.Set(key, &record{item, values, r.views})
}

// load is put for new records in the order of their keys, and ignores the indexes.
func (r *records) load(key string, item any, values [][]string) {
	r.Items.Load(key, &record{item, values, r.views})
}

// remove deletes the item under key, if any, and its index entries.
func (r *records) remove(key string) {
	prev, found := r.Items.Delete(key)
	if !found {
		return
	}
	for i, index := range r.Indexes {
		moveKey(index, key, prev.valuesOf(i), nil)
	}
}

// moveKey replaces the values of key by others.
func moveKey(x indexed.Index, key string, had, has []string) {
	if slices.Equal(had, has) {
		return
	}
	for _, value := range had {
		x.Entries.Delete(indexed.Entry{Value: value, Key: key})
	}
	for _, value := range has {
		x.Entries.Set(indexed.Entry{Value: value, Key: key})
	}
}

// reach sets the revision, unless it is none, and returns r.
func (r *records) reach(rev store.Revision) *records {
	if rev != 0 {
		r.revision = rev
	}
	return r
}

// valuesOf returns the values in the i-th index, none for a nil record.
func (r *record) valuesOf(i int) []string {
	if r == nil {
		return nil
	}
	return r.values[i]
}

// describe computes the item's index values with the user's functions, and reuses
// those of prev that are equal.
func describe(functions []indexFunction, key string, item any, prev *record) ([][]string, error) {
	var has [][]string
	shared := prev != nil
	if shared {
		has = prev.values
	} else {
		has = make([][]string, len(functions))
	}
	for i, f := range functions {
		values, err := f.of(key, item)
		if err != nil {
			return nil, err
		}
		if slices.Equal(has[i], values) {
			continue
		}
		if shared {
			has, shared = slices.Clone(has), false
		}
		has[i] = slices.Clone(values)
	}
	return has, nil
}

// find returns the record under key, or nil.
func (r *records) find(key string) *record {
	found, _ := r.Items.Get(key)
	return found
}

// get returns the item under key and whether there is one.
func (r *records) get(key string) (item any, exists bool) {
	if found := r.find(key); found != nil {
		return found.item, true
	}
	return nil, false
}

// rebuilt returns records with the same indexes over other items.
func (r *records) rebuilt(items *btree.Map[string, any]) (*records, error) {
	next := newRecords(r.functions)
	next.revision = r.revision
	var err error
	items.Scan(func(key string, item any) bool {
		var values [][]string
		if values, err = describe(r.functions, key, item, r.find(key)); err != nil {
			return false
		}
		next.load(key, item, values)
		for i, index := range next.Indexes {
			moveKey(index, key, nil, values[i])
		}
		return true
	})
	return next, err
}

// extended returns records with the same items and more indexes. The old indexes
// keep their values, even if an item was changed in place since.
func (r *records) extended(added []indexFunction) (*records, error) {
	next := newRecords(slices.Concat(r.functions, added))
	next.revision = r.revision
	copy(next.Indexes, r.Fork().Indexes)
	var err error
	r.Items.Scan(func(key string, was *record) bool {
		var values [][]string
		if values, err = describe(added, key, was.item, nil); err != nil {
			return false
		}
		for i := range added {
			moveKey(next.Indexes[len(r.Indexes)+i], key, nil, values[i])
		}
		next.load(key, was.item, slices.Concat(was.values, values))
		return true
	})
	return next, err
}

// recordView is a [View] without the type of its items. It is immutable.
type recordView struct{ recordParts }

// recordParts is a *[records]. It is an interface to save compile time: a package that can
// reach a generic B-tree through struct fields compiles all its methods again. It has what is
// read of a view, so that no function which users' packages inline mentions *records.
type recordParts interface {
	len() int
	lastRevision() store.Revision
	get(key string) (item any, exists bool)
	keys() []string
	from(key string, yield func(key string, item any) bool)
	index(name string) (i int, err error)
	indexFunctions() []indexFunction // in their order
	withValue(index int, value string, yield func(key string, item any) bool)
	keysWithValues(index int, values ...string) []string
	values(index int) []string
}

// recordsOf is not a method, so that users' packages do not compile its result
// type.
func recordsOf(v *recordView) *records { return v.recordParts.(*records) }

func (r *records) len() int { return r.Items.Len() }

func (r *records) lastRevision() store.Revision { return r.revision }

func (r *records) keys() []string { return r.Items.Keys() }

func (r *records) indexFunctions() []indexFunction { return r.functions }

// from calls yield with the keys and items from a key on, in order, until it
// returns false.
func (r *records) from(key string, yield func(key string, item any) bool) {
	var scan indexed.Scan
	r.Items.Ascend(key, func(key string, stored *record) bool {
		scan.Step()
		return yield(key, stored.item)
	})
}

// withValue calls yield with the keys and items that have value in an index, in
// order, until it returns false.
func (r *records) withValue(index int, value string, yield func(key string, item any) bool) {
	r.Map.WithValue(index, value, "", func(key string, stored *record) bool { return yield(key, stored.item) })
}

// keysWithValues returns the keys that have one of the values in an index, each
// once, in order.
func (r *records) keysWithValues(index int, values ...string) (keys []string) {
	for _, value := range values {
		r.Indexes[index].Ascend(value, "", func(key string) bool {
			keys = append(keys, key)
			return true
		})
	}
	if len(values) > 1 {
		slices.Sort(keys)
	}
	return slices.Compact(keys)
}

// values returns the values that any item has in an index, in order.
func (r *records) values(index int) []string { return r.Indexes[index].Values() }
