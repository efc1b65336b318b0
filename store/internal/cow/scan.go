package cow

// Leaves yields all entries, some at a time, in order, until yield returns false.
func (t Tree[E]) Leaves(yield func([]E) bool) {
	if t.root != nil {
		t.root.leaves(yield)
	}
}

// Ascend yields the entries that are not before p, in order, until yield returns false.
func (t Tree[E]) Ascend(p Place, yield func(E) bool) {
	if t.root != nil {
		t.root.ascend(p, yield)
	}
}

func (n *node[E]) leaves(yield func([]E) bool) bool {
	if n.isLeaf() {
		return yield(n.entries)
	}
	for _, p := range n.parts {
		if !p.node.leaves(yield) {
			return false
		}
	}
	return true
}

func (n *node[E]) ascend(p Place, yield func(E) bool) bool {
	if n.isLeaf() {
		i, _ := n.search(p)
		return each(n.entries[i:], yield)
	}
	i := n.partOf(p)
	if !n.parts[i].node.ascend(p, yield) {
		return false
	}
	for _, p := range n.parts[i+1:] {
		if !p.node.leaves(func(entries []E) bool { return each(entries, yield) }) {
			return false
		}
	}
	return true
}

// each yields the entries until yield returns false, and reports whether it did not.
func each[E any](entries []E, yield func(E) bool) bool {
	for _, e := range entries {
		if !yield(e) {
			return false
		}
	}
	return true
}

// At returns an entry about so far into a tree that is not empty: 0 is the first, and just
// below 1 the last. It takes all parts of a node for equally large.
func (t Tree[E]) At(share float64) E {
	n := t.root
	for !n.isLeaf() {
		share *= float64(len(n.parts))
		i := min(int(share), len(n.parts)-1)
		share -= float64(i)
		n = n.parts[i].node
	}
	return n.entries[min(int(share*float64(len(n.entries))), len(n.entries)-1)]
}

// Cursor reads a tree entry by entry, in order. It is for one goroutine at a time.
type Cursor[E Entry] struct {
	// entries are those left of a leaf, parts those left of the nodes above it, from the
	// root on.
	entries []E
	parts   [][]part[E]
}

// Cursor returns one before the first entry of a tree that is not written to meanwhile.
func (t Tree[E]) Cursor() *Cursor[E] {
	c := &Cursor[E]{}
	if t.root != nil {
		c.enter(t.root)
	}
	return c
}

// enter goes down to the first leaf of a node.
func (c *Cursor[E]) enter(n *node[E]) {
	for !n.isLeaf() {
		c.parts = append(c.parts, n.parts[1:])
		n = n.parts[0].node
	}
	c.entries = n.entries
}

// Next returns the next entry, and whether there is one.
func (c *Cursor[E]) Next() (e E, found bool) {
	for len(c.entries) == 0 {
		last := len(c.parts) - 1
		if last < 0 {
			return e, false
		}
		left := c.parts[last]
		if len(left) == 0 {
			c.parts = c.parts[:last]
			continue
		}
		c.parts[last] = left[1:]
		c.enter(left[0].node)
	}
	e, c.entries = c.entries[0], c.entries[1:]
	return e, true
}
