package cow

import "slices"

// The most that a node has. A write after a view copies a node on each level, and a read
// goes through one: larger nodes make writes after views slower and reads faster.
const (
	maxEntries = 32
	maxParts   = 16
)

// node is a leaf with entries, or an inner node with parts.
type node[E Entry] struct {
	owner   uint64
	entries []E
	parts   []part[E]
	// next is the index behind the entry that was inserted last: another one there
	// continues a run in order.
	next int
}

// part is a node below an inner one. Its entries, and those of the parts behind it, are at
// first or later; but those of a node's first part may be anywhere before the second.
type part[E Entry] struct {
	first Place
	node  *node[E]
}

func (n *node[E]) isLeaf() bool { return n.parts == nil }

// size returns the number of entries or parts.
func (n *node[E]) size() int { return len(n.entries) + len(n.parts) }

// search returns where p is, or would be, among a leaf's entries. It looks at the last one
// first, for entries that come in order.
func (n *node[E]) search(p Place) (i int, found bool) {
	low, high := 0, len(n.entries)
	for middle := high - 1; low < high; middle = int(uint(low+high) >> 1) {
		switch c := n.entries[middle].Compare(p); {
		case c == 0:
			return middle, true
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// partOf returns the index of the part where p is, or would be.
func (n *node[E]) partOf(p Place) int {
	low, high := 1, len(n.parts)
	for middle := high - 1; low < high; middle = int(uint(low+high) >> 1) {
		if n.parts[middle].first.Compare(p) <= 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1
}

// copyFor returns a copy for another owner.
func (n *node[E]) copyFor(owner uint64) *node[E] {
	c := &node[E]{owner: owner, next: n.next}
	if n.isLeaf() {
		c.entries = append(make([]E, 0, roomFor(len(n.entries))), n.entries...)
	} else {
		c.parts = append(make([]part[E], 0, roomFor(len(n.parts))), n.parts...)
	}
	return c
}

// roomFor returns a capacity for so many entries or parts: slices grow in small steps, since
// most nodes are not full.
func roomFor(size int) int {
	const step = 4
	return (size + step - 1) / step * step
}

// insert inserts e into a leaf as its i-th entry. If the leaf is full, it moves some
// entries to a new one, which it returns.
func (n *node[E]) insert(i int, e E) (split part[E]) {
	inOrder := i == n.next
	n.next = i + 1
	if len(n.entries) < maxEntries {
		n.insertEntry(i, e)
		return split
	}
	right := &node[E]{owner: n.owner}
	switch {
	case inOrder && i == maxEntries: // more will follow
		right.entries = append(make([]E, 0, maxEntries), e)
		right.next = 1
	case inOrder:
		n.moveFrom(i, right)
		n.insertEntry(i, e)
	default:
		const half = maxEntries / 2
		n.moveFrom(half, right)
		if i <= half {
			n.insertEntry(i, e)
		} else {
			right.insertEntry(i-half, e)
			right.next, n.next = i-half+1, 0
		}
	}
	return part[E]{right.entries[0].Place(), right}
}

// insertEntry inserts e into a leaf that is not full.
func (n *node[E]) insertEntry(i int, e E) {
	if len(n.entries) == cap(n.entries) {
		n.entries = append(make([]E, 0, roomFor(len(n.entries)+1)), n.entries...)
	}
	n.entries = slices.Insert(n.entries, i, e)
}

// moveFrom moves the entries from the i-th on to another leaf.
func (n *node[E]) moveFrom(i int, to *node[E]) {
	to.entries = append(make([]E, 0, roomFor(len(n.entries)-i+1)), n.entries[i:]...)
	n.entries = append(make([]E, 0, roomFor(i+1)), n.entries[:i]...)
}

// insertPart inserts a part as the i-th. If the node is full, it moves the parts behind it,
// or a half, to a new one, which it returns.
func (n *node[E]) insertPart(i int, p part[E]) (split part[E]) {
	if len(n.parts) < maxParts {
		n.parts = slices.Insert(n.parts, i, p)
		return split
	}
	right := &node[E]{owner: n.owner, parts: make([]part[E], 0, maxParts)}
	if i == maxParts {
		right.parts = append(right.parts, p)
		return part[E]{p.first, right}
	}
	const half = maxParts / 2
	right.parts = append(right.parts, n.parts[half:]...)
	clear(n.parts[half:])
	n.parts = n.parts[:half]
	if i <= half {
		n.parts = slices.Insert(n.parts, i, p)
	} else {
		right.parts = slices.Insert(right.parts, i-half, p)
	}
	return part[E]{right.parts[0].first, right}
}

// remove removes the i-th entry of a leaf and returns it.
func (n *node[E]) remove(i int) E {
	e := n.entries[i]
	n.entries = slices.Delete(n.entries, i, i+1)
	n.next = 0
	return e
}

// removePart removes the i-th part.
func (n *node[E]) removePart(i int) { n.parts = slices.Delete(n.parts, i, i+1) }

// fits reports whether a node and the one behind it can be joined, with room for more.
func (n *node[E]) fits(behind *node[E]) bool {
	room := maxEntries
	if !n.isLeaf() {
		room = maxParts
	}
	return n.size()+behind.size() <= room*3/4
}

// join appends the contents of the node behind n.
func (n *node[E]) join(behind part[E]) {
	if n.isLeaf() {
		n.entries = append(n.entries, behind.node.entries...)
		return
	}
	at := len(n.parts)
	n.parts = append(n.parts, behind.node.parts...)
	n.parts[at].first = behind.first // which is where its first part begins from now on
}
