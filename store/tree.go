package store

import (
	"slices"

	"github.com/tidwall/btree"
)

// degree is the B-tree's: a node has up to twice as many items. A write after a
// View copies one node on each level, a read visits one: a larger degree makes
// writes after views slower and reads faster.
const degree = 16

// Tree holds the newest state of each object, in key order and by the
// attributes that it indexes.
//
// It is a copy-on-write B-tree, so [Tree.View] costs the same whatever the
// size, and a later write copies only the nodes on its path: the view shares
// the others.
//
//	       ┌──────── root ────────┐         View: keep this root
//	  ┌────┴───┐             ┌────┴───┐
//	a b c    d e f         g h i    j k l   Put(h): copies root, its right
//	                                        child and ghi; the view's stay
//
// A Tree is for one goroutine at a time. Its views are safe for concurrent use.
type Tree struct {
	objects *btree.Map[string, *Object]
	indexes []index
	// view is the last view if nothing was written since, else nil.
	view *TreeView
}

// NewTree returns an empty tree with an index on each of the attributes;
// duplicates are ignored. Each index costs about as much memory and time per write
// as the tree itself.
func NewTree(indexes ...Attribute) *Tree {
	t := &Tree{objects: btree.NewMap[string, *Object](degree)}
	for i, a := range indexes {
		if !slices.Contains(indexes[:i], a) {
			t.indexes = append(t.indexes, newIndex(a))
		}
	}
	return t
}

// Put stores o under its key and returns the previous object, or nil. It takes
// O(log n) and shares o, which must not change any more.
func (t *Tree) Put(o *Object) (prev *Object) {
	t.view = nil
	prev, _ = t.objects.Set(o.Key, o)
	for _, x := range t.indexes {
		x.replace(prev, o)
	}
	return prev
}

// Delete removes the object under key and returns it, or nil if there is none.
func (t *Tree) Delete(key string) (prev *Object) {
	prev, found := t.objects.Delete(key)
	if !found {
		return nil
	}
	t.view = nil
	for _, x := range t.indexes {
		x.replace(prev, nil)
	}
	return prev
}

// Apply applies ev and returns the previous object. Emitted events and bookmarks
// change nothing.
func (t *Tree) Apply(ev Event) (prev *Object) {
	switch ev.Type {
	case Added, Modified:
		return t.Put(ev.Object)
	case Deleted:
		return t.Delete(ev.Object.Key)
	}
	return nil
}

// Get returns the object under key, or nil.
func (t *Tree) Get(key string) *Object {
	o, _ := t.objects.Get(key)
	return o
}

// Len returns the number of objects.
func (t *Tree) Len() int { return t.objects.Len() }

// View returns an immutable snapshot of the tree. It takes O(1), and returns the
// last view if nothing was written since. A nil Tree has the empty view.
func (t *Tree) View() *TreeView {
	if t == nil {
		return nil
	}
	if t.view == nil {
		t.view = &TreeView{&viewTrees{t.objects.Copy(), copyIndexes(t.indexes)}}
	}
	return t.view
}

func copyIndexes(indexes []index) []index {
	copies := slices.Clone(indexes)
	for i := range copies {
		copies[i].entries = copies[i].entries.Copy()
	}
	return copies
}
