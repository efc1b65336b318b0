package store

import "slices"

// current is the state of a [ThreadSafeStore] that its writers change. Every
// item is in two places: in byKey, for the reads and writes of one key, and in
// the ordered tree, which can be copied in constant time for a view.
//
// A view shares the items, so an item made before the last view was taken is
// replaced, never changed. A newer one is changed in place, which avoids most
// tree operations while there are no lists.
type current[T any] struct {
	StoreView[T]
	byKey map[string]*cached[T]
	views uint64 // how many views were taken
}

// cached is an item with the values that it had in each index when it was stored,
// in the order of the indexes, so that it can be removed from the indexes even if
// it was changed in place.
type cached[T any] struct {
	item   T
	values [][]string
	views  uint64 // how many views had been taken when this was made
}

// get returns the item under key and whether there is one.
func (s *current[T]) get(key string) (item T, exists bool) {
	if c := s.byKey[key]; c != nil {
		return c.item, true
	}
	return item, false
}

// valuesOf returns the index values of what is stored under key, or nil.
func (s *current[T]) valuesOf(key string) [][]string {
	if c := s.byKey[key]; c != nil {
		return c.values
	}
	return nil
}

// view returns an immutable copy, in constant time.
func (s *current[T]) view() *StoreView[T] {
	s.views++
	v := &StoreView[T]{items: *s.items.IsoCopy(), revision: s.revision}
	v.indexes = make([]postings[T], len(s.indexes))
	for i, index := range s.indexes {
		v.indexes[i] = index.view()
	}
	return v
}

// put stores item under key and its values in the indexes.
func (s *current[T]) put(key string, item T, values [][]string) {
	c := s.byKey[key]
	if c == nil || c.views != s.views {
		s.move(key, s.valuesOf(key), values)
		c = &cached[T]{item: item, values: values, views: s.views}
		if s.byKey == nil {
			s.byKey = make(map[string]*cached[T])
		}
		s.byKey[key] = c
		s.items.Set(key, c)
		return
	}
	s.move(key, c.values, values)
	c.item, c.values = item, values
}

// load is put for a state that is being built from keys in order. It does not
// touch the indexes.
func (s *current[T]) load(key string, item T, values [][]string) {
	c := &cached[T]{item: item, values: values}
	s.byKey[key] = c
	s.items.Load(key, c)
}

// remove deletes the item under key, if any, and its index entries.
func (s *current[T]) remove(key string) {
	if c := s.byKey[key]; c != nil {
		s.move(key, c.values, nil)
		s.items.Delete(key)
		delete(s.byKey, key)
	}
}

// move replaces the old index values of key by the new ones.
func (s *current[T]) move(key string, had, has [][]string) {
	for i, index := range s.indexes {
		index.move(key, at(had, i), at(has, i))
	}
}

// reach sets the revision, unless it is none.
func (s *current[T]) reach(rev Revision) {
	if rev != 0 {
		s.revision = rev
	}
}

// describe computes the item's index values with the user's functions, reusing
// those of its predecessor that are equal.
func describe[T any](indexes []postings[T], key string, item T, had [][]string) ([][]string, error) {
	has, shared := had, len(had) > 0
	if !shared {
		has = make([][]string, len(indexes))
	}
	for i, index := range indexes {
		values, err := index.valuesOf(key, item)
		if err != nil {
			return nil, err
		}
		if slices.Equal(has[i], values) {
			continue
		}
		if shared {
			has, shared = slices.Clone(had), false
		}
		has[i] = slices.Clone(values)
	}
	return has, nil
}

// at returns the i-th list of values, or none.
func at(values [][]string, i int) []string {
	if i < len(values) {
		return values[i]
	}
	return nil
}
