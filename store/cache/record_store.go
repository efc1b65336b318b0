package cache

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/store"
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

func (s *recordStore) lastRevision() store.Revision {
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
func (s *recordStore) swap(key string, item any, rev store.Revision) (old any, existed bool, err error) {
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

func (s *recordStore) remove(key string, rev store.Revision) {
	s.writing.Lock()
	defer s.writing.Unlock()
	commit(s, func(live *records) *records {
		live.remove(key)
		return live.reach(rev)
	})
}

func (s *recordStore) bookmark(rev store.Revision) {
	s.writing.Lock()
	defer s.writing.Unlock()
	commit(s, func(live *records) *records { return live.reach(rev) })
}

func (s *recordStore) replace(items iter.Seq2[string, any], rev store.Revision) error {
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

// recordWrite is a [KeyedTransaction] without the type of its item.
type recordWrite struct {
	kind     TransactionType
	key      string
	item     any
	values   [][]string // of the item in the indexes
	revision store.Revision
}

// transact applies the n writes that next returns. It calls next in the writer's
// turn.
func (s *recordStore) transact(n int, next func(i int) (recordWrite, error)) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	var failed []error
	applied := make([]int, 0, n)
	writes := make([]recordWrite, 0, n)
	for i := range n {
		w, err := s.prepare(next(i))
		if err != nil {
			failed = append(failed, fmt.Errorf("transaction %d: %w", i, err))
			continue
		}
		applied, writes = append(applied, i), append(writes, w)
	}
	commit(s, func(live *records) *records {
		for _, w := range writes {
			apply(w, live)
		}
		return live
	})
	if failed != nil {
		return &TransactionError{Total: n, Applied: applied, Errors: failed}
	}
	return nil
}

// prepare returns a write that can no longer fail.
func (s *recordStore) prepare(next recordWrite, err error) (recordWrite, error) {
	if err != nil {
		return next, err
	}
	switch next.kind {
	case TransactionAdd, TransactionUpdate:
		prev, functions := find(s, next.key)
		next.values, err = describe(functions, next.key, next.item, prev)
		return next, err
	case TransactionDelete:
		return next, nil
	}
	return next, fmt.Errorf("%w: %v: use TransactionAdd, TransactionUpdate or TransactionDelete", store.ErrUnsupported, next.kind)
}

// apply is not a method, for the reason of [recordsOf].
func apply(next recordWrite, live *records) {
	if next.kind == TransactionDelete {
		live.remove(next.key)
	} else {
		live.put(next.key, live.find(next.key), next.item, next.values)
	}
	live.reach(next.revision)
}
