package cow

import (
	"strings"
	"sync/atomic"
)

// Place is a position in the order of entries: by Text, and then by Key.
type Place struct{ Text, Key string }

// Compare returns a negative number if p is before q, zero if they are the same.
func (p Place) Compare(q Place) int {
	if c := strings.Compare(p.Text, q.Text); c != 0 {
		return c
	}
	return strings.Compare(p.Key, q.Key)
}

// Entry is what a [Tree] holds: a value that knows its place.
type Entry interface {
	// Place returns the entry's place, which is always the same.
	Place() Place
	// Compare is that of the entry's place.
	Compare(Place) int
}

// Tree is a sorted set of entries, at most one for each place. The zero value is empty.
//
// A Tree is for one goroutine at a time. One that is not written to any more, such as a
// view, is safe for concurrent use.
type Tree[E Entry] struct {
	root *node[E]
	len  int
	// owner is that of the nodes that only this tree has and may change; zero after a
	// view, until the next write.
	owner uint64
}

// owners are the owners given so far, in all trees: trees that share nodes must differ.
var owners atomic.Uint64

// View returns an immutable copy, in constant time.
func (t *Tree[E]) View() Tree[E] {
	t.owner = 0
	return *t
}

// Fork returns a copy to write to, in constant time, of a tree that must not be written
// to any more. It is safe for concurrent use.
func (t Tree[E]) Fork() Tree[E] { return Tree[E]{root: t.root, len: t.len} }

// Len returns the number of entries.
func (t Tree[E]) Len() int { return t.len }

// own gives the tree an owner, before a write.
func (t *Tree[E]) own() {
	if t.owner == 0 {
		t.owner = owners.Add(1)
	}
}

// Get returns the entry at p and whether there is one.
func (t Tree[E]) Get(p Place) (e E, found bool) {
	n := t.root
	if n == nil {
		return e, false
	}
	for !n.isLeaf() {
		n = n.parts[n.partOf(p)].node
	}
	if i, found := n.search(p); found {
		return n.entries[i], true
	}
	return e, false
}

// Set puts e at its place. It returns the entry that was there and whether there was one.
func (t *Tree[E]) Set(e E) (prev E, replaced bool) {
	t.own()
	if t.root == nil {
		t.root = &node[E]{owner: t.owner}
	}
	prev, replaced, split := t.set(&t.root, e.Place(), e)
	if split.node != nil {
		t.root = &node[E]{owner: t.owner, parts: append(make([]part[E], 0, maxParts), part[E]{node: t.root}, split)}
	}
	if !replaced {
		t.len++
	}
	return prev, replaced
}

// set puts e into the node at. If that splits the node, it returns the new part, which
// comes behind it.
func (t *Tree[E]) set(at **node[E], p Place, e E) (prev E, replaced bool, split part[E]) {
	n := t.writable(at)
	if n.isLeaf() {
		i, found := n.search(p)
		if found {
			prev, n.entries[i] = n.entries[i], e
			return prev, true, split
		}
		return prev, false, n.insert(i, e)
	}
	i := n.partOf(p)
	prev, replaced, split = t.set(&n.parts[i].node, p, e)
	if split.node != nil {
		split = n.insertPart(i+1, split)
	}
	return prev, replaced, split
}

// writable makes the node at one that the tree owns.
func (t *Tree[E]) writable(at **node[E]) *node[E] {
	if (*at).owner != t.owner {
		*at = (*at).copyFor(t.owner)
	}
	return *at
}

// Delete removes the entry at p. It returns the entry and whether there was one.
func (t *Tree[E]) Delete(p Place) (prev E, found bool) {
	if t.root == nil {
		return prev, false
	}
	t.own()
	root, prev, found := t.delete(t.root, p)
	if !found {
		return prev, false
	}
	for len(root.parts) == 1 {
		root = root.parts[0].node
	}
	if root.size() == 0 {
		root = nil
	}
	t.root = root
	t.len--
	return prev, true
}

// delete removes the entry at p from n. It returns the node that takes n's place, which is
// n if there is no such entry.
func (t *Tree[E]) delete(n *node[E], p Place) (now *node[E], prev E, found bool) {
	if n.isLeaf() {
		i, found := n.search(p)
		if found {
			n = t.writable(&n)
			prev = n.remove(i)
		}
		return n, prev, found
	}
	i := n.partOf(p)
	child, prev, found := t.delete(n.parts[i].node, p)
	if found {
		n = t.writable(&n)
		n.parts[i].node = child
		t.tidy(n, i)
	}
	return n, prev, found
}

// tidy removes the i-th part of n if it is empty, and joins it with a neighbour if both are
// small.
func (t *Tree[E]) tidy(n *node[E], i int) {
	child := n.parts[i].node
	if child.size() == 0 {
		n.removePart(i)
		return
	}
	if i+1 < len(n.parts) && child.fits(n.parts[i+1].node) {
		i++
	} else if i == 0 || !n.parts[i-1].node.fits(child) {
		return
	}
	t.writable(&n.parts[i-1].node).join(n.parts[i])
	n.removePart(i)
}
