package tree

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/indexed"
)

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
type Tree struct{ core treeCore }

// treeCore is a *[tree], as an interface for the reason of [viewParts]: users' packages reach
// trees through the backends.
type treeCore interface {
	put(o *store.Object) (prev *store.Object)
	remove(key string) (prev *store.Object)
	load(objects []*store.Object)
	get(key string) *store.Object
	len() int
	asView() *View
}

// tree is the content of a [Tree].
type tree struct {
	indexed.Map[*store.Object]
	// attributes are those of the indexes.
	attributes []store.Attribute
	// last is at least the greatest key: a key greater than it is not there, and is appended
	// without a search.
	last string
	// appended are keys of which each is in a node that is to be compacted.
	appended []string
	// near is, for each index, where the search for the last entry has been: the next one
	// is often there.
	near []btree.PathHint
	// view is the last view if nothing was written since, else nil.
	view *View
}

// New returns an empty tree with an index on each of the attributes;
// duplicates are ignored. Each index costs about as much memory as the tree itself, and
// as much time for each write that changes the value of an object.
func New(indexes ...store.Attribute) *Tree {
	var attributes []store.Attribute
	for _, a := range indexes {
		if !slices.Contains(attributes, a) {
			attributes = append(attributes, a)
		}
	}
	return &Tree{&tree{Map: indexed.New[*store.Object](len(attributes)), attributes: attributes, near: make([]btree.PathHint, len(attributes))}}
}

// Put stores o under its key and returns the previous object, or nil. It takes
// O(log n) and shares o, which must not change any more.
func (t *Tree) Put(o *store.Object) (prev *store.Object) { return t.core.put(o) }

func (t *tree) put(o *store.Object) (prev *store.Object) {
	if t.view != nil {
		t.view = nil
		t.compact()
	}
	prev = t.set(o)
	for i := range t.Indexes {
		t.index(i, prev, o)
	}
	return prev
}

// set puts o among the items and returns the previous object, or nil.
func (t *tree) set(o *store.Object) (prev *store.Object) {
	if o.Key > t.last {
		t.last = o.Key
		prev, _ = t.Items.Load(o.Key, o)
		t.rememberAppended(o.Key)
		return prev
	}
	prev, _ = t.Items.Set(o.Key, o)
	return prev
}

// Delete removes the object under key and returns it, or nil if there is none.
func (t *Tree) Delete(key string) (prev *store.Object) { return t.core.remove(key) }

func (t *tree) remove(key string) (prev *store.Object) {
	prev, found := t.Items.Delete(key)
	if !found {
		return nil
	}
	t.view = nil
	for i := range t.Indexes {
		t.index(i, prev, nil)
	}
	return prev
}

// index replaces prev by o in the i-th index. Either may be nil.
func (t *tree) index(i int, prev, o *store.Object) {
	if store.Alike(prev, o) {
		return
	}
	was, held := entryOf(t.attributes[i], prev)
	is, holds := entryOf(t.attributes[i], o)
	if held && holds && was.Value == is.Value {
		return
	}
	if held {
		t.Indexes[i].Entries.Delete(was)
	}
	if holds {
		t.Indexes[i].Entries.SetHint(is, &t.near[i])
	}
}

// entryOf returns the entry of o, and whether there is one.
func entryOf(a store.Attribute, o *store.Object) (indexed.Entry, bool) {
	if o == nil {
		return indexed.Entry{}, false
	}
	value, held := a.Of(o)
	return indexed.Entry{Value: value, Key: o.Key}, held
}

// Apply applies ev and returns the previous object. Emitted events and bookmarks
// change nothing.
func (t *Tree) Apply(ev store.Event) (prev *store.Object) {
	switch ev.Type {
	case store.Added, store.Modified:
		return t.Put(ev.Object)
	case store.Deleted:
		return t.Delete(ev.Object.Key)
	}
	return nil
}

// Get returns the object under key, or nil.
func (t *Tree) Get(key string) *store.Object { return t.core.get(key) }

func (t *tree) get(key string) *store.Object {
	if key > t.last {
		return nil
	}
	o, _ := t.Items.Get(key)
	return o
}

// Len returns the number of objects.
func (t *Tree) Len() int { return t.core.len() }

func (t *tree) len() int { return t.Items.Len() }

// View returns an immutable snapshot of the tree. It takes O(1), and returns the
// last view if nothing was written since. A nil Tree has the empty view.
func (t *Tree) View() *View {
	if t == nil {
		return nil
	}
	return t.core.asView()
}

func (t *tree) asView() *View {
	if t.view == nil {
		t.view = newView(treeParts{t.Map.View(), t.attributes})
	}
	return t.view
}
