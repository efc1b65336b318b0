package queue

import "iter"

// orderedMap is a map in the order in which its keys were added. Adding, finding and
// removing a key takes constant time. The zero value is empty.
type orderedMap[V any] struct {
	byKey       burstMap[string, *node[V]]
	first, last *node[V]
}

type node[V any] struct {
	key        string
	value      V
	prev, next *node[V]
}

func (l *orderedMap[V]) len() int { return len(l.byKey.entries) }

// at returns the value under key, to be changed in place; nil if there is none.
func (l *orderedMap[V]) at(key string) *V {
	if n := l.byKey.entries[key]; n != nil {
		return &n.value
	}
	return nil
}

// push adds a new key at the end and returns its value, which is zero.
func (l *orderedMap[V]) push(key string) *V {
	n := &node[V]{key: key, prev: l.last}
	l.byKey.put(key, n)
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
	return &n.value
}

// remove removes key and returns its value, if it was there.
func (l *orderedMap[V]) remove(key string) (value V, was bool) {
	n := l.byKey.entries[key]
	if n == nil {
		return value, false
	}
	l.byKey.remove(key)
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	return n.value, true
}

// pop removes the first value. There must be one.
func (l *orderedMap[V]) pop() V {
	value, _ := l.remove(l.first.key)
	return value
}

// all iterates in order.
func (l *orderedMap[V]) all() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for n := l.first; n != nil; n = n.next {
			if !yield(n.key, &n.value) {
				return
			}
		}
	}
}

// ring is a queue in a slice that is reused. It keeps no reference to removed elements,
// and releases the memory of a burst once it is empty.
type ring[E any] struct {
	slots []E
	head  int // slots before it are free
}

func (r *ring[E]) len() int { return len(r.slots) - r.head }

// all returns the queue, for reading, until the next push.
func (r *ring[E]) all() []E { return r.slots[r.head:] }

func (r *ring[E]) push(e E) {
	if len(r.slots) == cap(r.slots) && r.head > len(r.slots)/2 {
		n := copy(r.slots, r.slots[r.head:])
		clear(r.slots[n:])
		r.slots, r.head = r.slots[:n], 0
	}
	r.slots = append(r.slots, e)
}

// drop removes the first n elements.
func (r *ring[E]) drop(n int) {
	clear(r.slots[r.head : r.head+n])
	r.head += n
	if r.head < len(r.slots) {
		return
	}
	r.slots, r.head = r.slots[:0], 0
	if cap(r.slots) > keptSlots {
		r.slots = nil
	}
}

// first returns the first element. There must be one.
func (r *ring[E]) first() E { return r.slots[r.head] }
