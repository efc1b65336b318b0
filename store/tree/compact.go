package tree

import "github.com/watchmill/watchmill/store/internal/indexed"

// The library's B-tree splits a full node into halves of one array. Where keys come in order
// the first half gets no more items, but keeps the whole array; a copy of the node, as a
// write after a view makes it, has an array of its own size. So the tree remembers a key
// of each node that it appends, and later puts its object again.
//
//	appended     a b c d │ e f g h      array of a to d has room for h
//	b put again  a b c d                the copy's has not

const (
	// growing is how many of the remembered keys are in nodes that may still get items, or
	// whose parents may: those below the last two parents.
	growing = 2*indexed.Degree + 4
	// maxCompacted bounds the nodes that one write copies, to some 100 µs.
	maxCompacted = 64
)

// rememberAppended remembers the key of the last object if it is in the middle of a node,
// in a tree that was only appended to. If objects are also deleted from the tree, it
// remembers no more keys than the tree has such nodes.
func (t *tree) rememberAppended(key string) {
	if t.len()%indexed.Degree == indexed.Degree/2 && len(t.appended) <= t.len()/indexed.Degree {
		t.appended = append(t.appended, key)
	}
}

// compact copies nodes of remembered keys, which a view must share.
func (t *tree) compact() {
	n := min(len(t.appended)-growing, maxCompacted)
	if n <= 0 {
		return
	}
	for _, key := range t.appended[:n] {
		o, found := t.Items.Get(key)
		if !found {
			continue
		}
		t.Items.Set(key, o)
		for i, a := range t.attributes {
			if e, held := entryOf(a, o); held {
				t.Indexes[i].Entries.Set(e)
			}
		}
	}
	t.appended = t.appended[n:]
}
