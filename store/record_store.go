package store

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// recordStore is a [ThreadSafeStore] without the type of its items. The zero value
// is empty.
type recordStore struct {
	writing sync.Mutex // one writer at a time; held while user functions run
	// mu guards live: it is held for a few tree operations, never for user
	// functions.
	mu   sync.RWMutex
	live recordParts // nil while the zero value is empty
	// published is a view of live, or nil if live changed since.
	published atomic.Pointer[recordView]
	// reads counts the reads of single items since live changed.
	reads atomic.Uint32
}

// readsPerView is how many single items are read under the lock before a view is
// published, from which later reads need none. A view at each read would make the
// writes between them copy tree nodes.
const readsPerView = 16

// liveRecords returns the records that writers change. The caller holds a lock.
func liveRecords(s *recordStore) *records {
	if s.live == nil {
		return newRecords(nil)
	}
	return s.live.(*records)
}

// commit changes or replaces the live records. The caller holds writing.
func commit(s *recordStore, change func(live *records) (next *records)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = change(liveRecords(s))
	s.published.Store(nil)
	s.reads.Store(0)
}

// view returns the contents as they are now: without a lock if nothing was written
// since the last view.
func (s *recordStore) view() *recordView {
	if v := s.published.Load(); v != nil {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.published.Load(); v != nil {
		return v
	}
	v := &recordView{liveRecords(s).view()}
	s.published.Store(v)
	return v
}

func (s *recordStore) get(key string) (item any, exists bool) {
	if v := s.published.Load(); v != nil {
		return v.get(key)
	}
	if s.reads.Add(1) > readsPerView {
		return s.view().get(key)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return liveRecords(s).get(key)
}

func (s *recordStore) lastRevision() Revision {
	if v := s.published.Load(); v != nil {
		return v.lastRevision()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return liveRecords(s).revision
}

// find returns the record under key, or nil. The caller holds writing, so that no
// other is stored meanwhile.
func find(s *recordStore, key string) (found *record, functions []indexFunction) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	live := liveRecords(s)
	return live.find(key), live.functions
}

// swap stores item under key and returns the item that was there.
func (s *recordStore) swap(key string, item any, rev Revision) (old any, existed bool, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	prev, functions := find(s, key)
	values, err := describe(functions, key, item, prev)
	if err != nil {
		return nil, false, err
	}
	if existed = prev != nil; existed {
		old = prev.item // before put, which may change prev
	}
	commit(s, func(live *records) *records {
		live.put(key, prev, item, values)
		return live.reach(rev)
	})
	return old, existed, nil
}

func (s *recordStore) remove(key string, rev Revision) {
	s.writing.Lock()
	defer s.writing.Unlock()
	commit(s, func(live *records) *records {
		live.remove(key)
		return live.reach(rev)
	})
}

func (s *recordStore) bookmark(rev Revision) {
	s.writing.Lock()
	defer s.writing.Unlock()
	commit(s, func(live *records) *records { return live.reach(rev) })
}

func (s *recordStore) replace(items iter.Seq2[string, any], rev Revision) error {
	var incoming btree.Map[string, any]
	for key, item := range items {
		incoming.Load(key, item)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	next, err := recordsOf(s.view()).rebuilt(&incoming)
	if err != nil {
		return err
	}
	commit(s, func(*records) *records { return next.reach(rev) })
	return nil
}

// addIndexes adds indexes in the order of their names.
func (s *recordStore) addIndexes(added []indexFunction) error {
	slices.SortFunc(added, func(a, b indexFunction) int { return strings.Compare(a.name, b.name) })
	s.writing.Lock()
	defer s.writing.Unlock()
	view := recordsOf(s.view())
	for _, f := range added {
		if _, err := view.index(f.name); err == nil {
			return fmt.Errorf("%w: %q: choose another name", ErrIndexConflict, f.name)
		}
		if f.values == nil {
			return &IndexFuncError{Index: f.name, Err: ErrNoIndexFunc}
		}
	}
	next, err := view.extended(added)
	if err != nil {
		return err
	}
	commit(s, func(*records) *records { return next })
	return nil
}
