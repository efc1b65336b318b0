package queue

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// HeapConfig says how a [Heap] works. Both fields are required.
type HeapConfig[T any] struct {
	// Key returns the key of an item.
	Key store.KeyFunc[T]
	// Less reports whether a must be popped before b. It must be a strict weak order.
	// It is called with the heap locked, so it must not use the heap. If it panics, the
	// call that needed it returns the panic, and the order of the items may be wrong. The
	// item being added or removed is in the heap or gone all the same, and BulkAdd adds no
	// more items.
	Less func(a, b T) bool
}

func (c *HeapConfig[T]) validate() error {
	switch {
	case c.Key == nil:
		return &ConfigError{Field: "HeapConfig.Key", Problem: "is nil; give a function that returns an item's key"}
	case c.Less == nil:
		return &ConfigError{Field: "HeapConfig.Less", Problem: "is nil; give a function that orders two items"}
	}
	return nil
}

// Heap is a queue that pops the least of its items first, and has every key at most
// once. Make one with [NewHeap].
//
// It is safe for concurrent use. Only Pop blocks.
type Heap[T any] struct {
	prepare  preparation[T]
	mu       sync.Mutex
	nonempty sync.Cond
	items    indexedHeap[keyed[T]]
	byKey    burstMap[string, *slot[keyed[T]]]
	closed   bool
}

// NewHeap returns an empty heap. The error is a [*ConfigError].
func NewHeap[T any](cfg HeapConfig[T]) (*Heap[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	h := &Heap[T]{prepare: preparation[T]{key: cfg.Key}}
	h.items.less = func(a, b keyed[T]) bool { return cfg.Less(a.object, b.object) }
	h.nonempty.L = &h.mu
	return h, nil
}

// Add adds item, in place of the one with its key. The errors are
// [*store.KeyFuncError], [ErrClosed] and Less's panic as a [*usercode.PanicError].
func (h *Heap[T]) Add(item T) error { return h.add(true, item) }

// Update is the same as Add.
func (h *Heap[T]) Update(item T) error { return h.Add(item) }

// AddIfNotPresent adds item unless there is one with its key. The errors are those of
// Add.
func (h *Heap[T]) AddIfNotPresent(item T) error { return h.add(false, item) }

// BulkAdd adds all items before any Pop returns one of them. The errors are those of
// Add; if a key function fails, nothing is added.
func (h *Heap[T]) BulkAdd(items []T) error { return h.add(true, items...) }

func (h *Heap[T]) add(replace bool, items ...T) error {
	list, err := h.prepare.all(items)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	defer h.nonempty.Broadcast()
	return callLess(func() {
		for _, item := range list.objects {
			h.put(item, replace)
		}
	})
}

// callLess calls f, which calls Less, and contains its panic.
func callLess(f func()) error { return usercode.Call("HeapConfig.Less", "", f) }

func (h *Heap[T]) put(item keyed[T], replace bool) {
	s := h.byKey.entries[item.key]
	switch {
	case s == nil:
		s = h.items.add(item)
		h.byKey.put(item.key, s)
	case !replace:
		return
	}
	s.value = item
	h.items.fix(s)
}

// Delete removes the item with item's key. The errors are [ErrNotFound] if
// there is none, [*store.KeyFuncError], and Less's panic as a
// [*usercode.PanicError].
func (h *Heap[T]) Delete(item T) error {
	key, err := h.prepare.keyOf(item)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.byKey.entries[key]
	if s == nil {
		return ErrNotFound
	}
	h.byKey.remove(key)
	return callLess(func() { h.items.remove(s) })
}

// Pop waits for an item and removes the least. The errors are ctx's cause if ctx ends first,
// [ErrClosed] once the heap is closed and empty, and Less's panic as a
// [*usercode.PanicError], together with the item that was removed.
func (h *Heap[T]) Pop(ctx context.Context) (item T, err error) {
	if err := context.Cause(ctx); err != nil {
		return item, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := await(ctx, &h.nonempty, func() bool { return h.items.len() > 0 || h.closed }); err != nil {
		return item, err
	}
	if h.items.len() == 0 {
		return item, ErrClosed
	}
	least := h.items.least()
	h.byKey.remove(least.value.key)
	err = callLess(func() { h.items.remove(least) })
	return least.value.object, err
}

// Get returns the item in the heap with item's key and whether there is one. The
// error is a [*store.KeyFuncError].
func (h *Heap[T]) Get(item T) (held T, exists bool, err error) {
	key, err := h.prepare.keyOf(item)
	if err != nil {
		return held, false, err
	}
	held, exists = h.GetByKey(key)
	return held, exists, nil
}

// GetByKey returns the item with the key and whether there is one.
func (h *Heap[T]) GetByKey(key string) (item T, exists bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.byKey.entries[key]; s != nil {
		return s.value.object, true
	}
	return item, false
}

// List returns all items in a new slice, the least first and the others in no
// particular order.
func (h *Heap[T]) List() []T {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]T, 0, h.items.len())
	for _, s := range h.items.slots {
		list = append(list, s.value.object)
	}
	return list
}

// ListKeys returns all keys in a new slice, in the order of List.
func (h *Heap[T]) ListKeys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := make([]string, 0, h.items.len())
	for _, s := range h.items.slots {
		keys = append(keys, s.value.key)
	}
	return keys
}

// Len returns the number of items.
func (h *Heap[T]) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.items.len()
}

// Close makes all later additions fail. The items in the heap can still be popped.
func (h *Heap[T]) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.nonempty.Broadcast()
}

// IsClosed reports whether the heap was closed.
func (h *Heap[T]) IsClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// indexedHeap is a binary heap whose slots have their positions, so that any of them can
// be moved or removed in logarithmic time. It releases the memory of a burst once it is empty.
type indexedHeap[E any] struct {
	slots []*slot[E]
	less  func(a, b E) bool
}

type slot[E any] struct {
	value E
	at    int
}

func (h *indexedHeap[E]) len() int { return len(h.slots) }

// least returns the first slot. There must be one.
func (h *indexedHeap[E]) least() *slot[E] { return h.slots[0] }

// add appends value. The caller must fix the slot.
func (h *indexedHeap[E]) add(value E) *slot[E] {
	s := &slot[E]{value, len(h.slots)}
	h.slots = append(h.slots, s)
	return s
}

// remove removes s.
func (h *indexedHeap[E]) remove(s *slot[E]) {
	last := len(h.slots) - 1
	moved := h.slots[last]
	h.swap(s.at, last)
	h.slots[last] = nil
	h.slots = h.slots[:last]
	if moved != s {
		h.fix(moved)
	}
	if last == 0 && cap(h.slots) > keptSlots {
		h.slots = nil
	}
}

// fix moves s to its position by value.
func (h *indexedHeap[E]) fix(s *slot[E]) {
	for s.at > 0 && h.before(s.at, (s.at-1)/2) {
		h.swap(s.at, (s.at-1)/2)
	}
	for {
		child := 2*s.at + 1
		if child+1 < len(h.slots) && h.before(child+1, child) {
			child++
		}
		if child >= len(h.slots) || !h.before(child, s.at) {
			return
		}
		h.swap(s.at, child)
	}
}

func (h *indexedHeap[E]) before(i, j int) bool { return h.less(h.slots[i].value, h.slots[j].value) }

func (h *indexedHeap[E]) swap(i, j int) {
	h.slots[i], h.slots[j] = h.slots[j], h.slots[i]
	h.slots[i].at, h.slots[j].at = i, j
}
