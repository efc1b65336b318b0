package tree

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/indexed"
)

// View is the state of a [Tree] at one moment. It never changes and is safe
// for concurrent use without locks. A nil view is empty.
//
// It keeps alive the objects it shows, and nothing newer.
type View struct{ parts viewParts }

// viewParts is a *[treeParts]. It is an interface to save compile time: a package
// that can reach a generic B-tree through struct fields compiles all its methods
// again, and users' packages reach views through the backend's interface.
type viewParts interface{ isTreeParts() }

// treeParts are the B-trees of a view. Only their reading methods may be called;
// even Copy writes to its receiver.
type treeParts struct {
	indexed.Map[*store.Object]
	attributes []store.Attribute
}

func (*treeParts) isTreeParts() {}

// newView makes view and parts in one allocation: there is a view for each event that
// comes alone.
func newView(parts treeParts) *View {
	both := &struct {
		view  View
		parts treeParts
	}{parts: parts}
	both.view.parts = &both.parts
	return &both.view
}

// partsOf is not a method, so that users' packages do not compile its result type.
func partsOf(v *View) *treeParts { return v.parts.(*treeParts) }

// Get returns the object under key, or nil.
func (v *View) Get(key string) *store.Object {
	if v == nil {
		return nil
	}
	o, _ := partsOf(v).Items.Get(key)
	return o
}

// Len returns the number of objects.
func (v *View) Len() int {
	if v == nil {
		return 0
	}
	return partsOf(v).Items.Len()
}

// All returns the objects under prefix (see [store.HasPrefix]) whose keys are greater
// than after, in key order. It seeks, so other objects cost nothing.
func (v *View) All(prefix, after string) iter.Seq[*store.Object] {
	return func(yield func(*store.Object) bool) {
		if v != nil {
			v.run(prefix, after, yield)
		}
	}
}

// run yields what All returns.
func (v *View) run(prefix, after string, yield func(*store.Object) bool) {
	items := partsOf(v).Items
	ascend := func(from string, yield func(*store.Object) bool) {
		items.Ascend(from, func(_ string, o *store.Object) bool { return yield(o) })
	}
	under(items.Get, ascend, prefix, after, yield)
}

// under yields the objects under prefix whose keys are greater than after. The
// functions get one object, and all from a key on.
func under(get func(key string) (*store.Object, bool), ascend func(from string, yield func(*store.Object) bool), prefix, after string, yield func(*store.Object) bool) {
	if isPath(prefix) {
		if o, found := get(prefix); found && prefix > after && !yield(o) {
			return
		}
		prefix += "/"
	}
	var scan indexed.Scan
	isFirst := true // only the first can be the object under after
	ascend(max(prefix, after), func(o *store.Object) bool {
		// The key is read only if necessary: o is rarely in the processor's caches.
		if prefix != "" && !strings.HasPrefix(o.Key, prefix) {
			return false
		}
		scan.Step()
		skip := isFirst && o.Key == after
		isFirst = false
		return skip || yield(o)
	})
}

// isPath reports whether prefix covers a key of its own besides those below it.
// Other keys may be between them: "foo" < "foo-bar" < "foo/bar".
func isPath(prefix string) bool { return prefix != "" && !strings.HasSuffix(prefix, "/") }

// AppendTo appends the objects under prefix to dst, in key order.
func (v *View) AppendTo(dst []*store.Object, prefix string) []*store.Object {
	if v == nil {
		return dst
	}
	if prefix != "" {
		return slices.AppendSeq(dst, v.All(prefix, ""))
	}
	dst = slices.Grow(dst, v.Len())
	var scan indexed.Scan
	partsOf(v).Items.Scan(func(_ string, o *store.Object) bool {
		scan.Step()
		dst = append(dst, o)
		return true
	})
	return dst
}

// Indexed reports whether there is an index on a, so that [View.ByIndex]
// works.
func (v *View) Indexed(a store.Attribute) bool { return indexOf(v, a) >= 0 }

// indexOf returns the number of the index on a, or -1.
func indexOf(v *View, a store.Attribute) int {
	if v == nil {
		return -1
	}
	return slices.Index(partsOf(v).attributes, a)
}

// ByIndex returns the objects whose attribute a is value, otherwise as All does:
// under prefix, keys greater than after, in key order. It costs O(log n) for each
// object that it returns.
//
// As in selectors, the value "" of a field also finds the objects without the
// field; of a label it does not.
//
// The error is an [store.ErrUnknownIndex] if there is no index on a.
func (v *View) ByIndex(a store.Attribute, value, prefix, after string) (iter.Seq[*store.Object], error) {
	i := indexOf(v, a)
	if i < 0 {
		return nil, fmt.Errorf("%w: %v: name it when the tree is made", store.ErrUnknownIndex, a)
	}
	return withValue(v, i, value, prefix, after), nil
}

// withValue returns what ByIndex does, from the i-th index.
func withValue(v *View, i int, value, prefix, after string) iter.Seq[*store.Object] {
	return func(yield func(*store.Object) bool) {
		parts := partsOf(v)
		get := func(key string) (*store.Object, bool) {
			if !parts.Indexes[i].Has(value, key) {
				return nil, false
			}
			return parts.Items.Get(key)
		}
		ascend := func(from string, yield func(*store.Object) bool) {
			parts.WithValue(i, value, from, func(_ string, o *store.Object) bool { return yield(o) })
		}
		under(get, ascend, prefix, after, yield)
	}
}

// Bytes estimates what the view keeps alive: its nodes, and its objects, by a
// sample of at most a thousand. sizeOf is as [store.Schema].Size.
func (v *View) Bytes(sizeOf func(*store.Object) int) int64 {
	const sample = 1024
	n := v.Len()
	if n == 0 {
		return 0
	}
	step := max(1, n/sample)
	total, measured := int64(0), int64(0)
	for i := 0; i < n; i += step {
		_, o, _ := partsOf(v).Items.GetAt(i)
		total += store.BytesBeside(o, nil, sizeOf)
		measured++
	}
	return v.NodeBytes() + total/measured*int64(n)
}

// NodeBytes estimates what the view's nodes take, without its objects. They are about two thirds
// full: 24 bytes for an item, and 32 for an entry of an index.
func (v *View) NodeBytes() int64 {
	const perItem, perEntry = 40, 50
	return int64(v.Len()) * int64(perItem+perEntry*len(partsOf(v).Indexes))
}

// From returns a tree with the view's contents and indexes, to roll a state
// forward. It takes O(1); writes to it do not change the view. It is safe for
// concurrent use.
func From(v *View) *Tree {
	if v == nil {
		return New()
	}
	parts := partsOf(v)
	last, _, _ := parts.Items.Max()
	return &Tree{&tree{
		Map: parts.Fork(), attributes: parts.attributes,
		last: last, near: make([]btree.PathHint, len(parts.attributes)),
	}}
}
