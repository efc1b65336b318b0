package queue

import "iter"

// linked is a map that keeps the order in which its keys came. A key is in the
// order exactly while it is in the map, so neither can outgrow the other, and
// removing any of them takes constant time. The zero value is empty.
type linked[V any] struct {
	byKey       map[string]*node[V]
	first, last *node[V]
}

type node[V any] struct {
	key        string
	value      V
	prev, next *node[V]
}

func (l *linked[V]) len() int { return len(l.byKey) }

// at returns the value under key for changing in place, and nil if there is
// none.
func (l *linked[V]) at(key string) *V {
	if n := l.byKey[key]; n != nil {
		return &n.value
	}
	return nil
}

// push puts a new key last and returns its value, which is zero.
func (l *linked[V]) push(key string) *V {
	n := &node[V]{key: key, prev: l.last}
	if l.byKey == nil {
		l.byKey = make(map[string]*node[V])
	}
	l.byKey[key] = n
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
	return &n.value
}

// remove takes out key and returns its value, if it was there.
func (l *linked[V]) remove(key string) (value V, was bool) {
	n := l.byKey[key]
	if n == nil {
		return value, false
	}
	delete(l.byKey, key)
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

// pop takes out the first, of which there must be one.
func (l *linked[V]) pop() V {
	value, _ := l.remove(l.first.key)
	return value
}

// all iterates in order.
func (l *linked[V]) all() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for n := l.first; n != nil; n = n.next {
			if !yield(n.key, &n.value) {
				return
			}
		}
	}
}
