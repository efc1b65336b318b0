package watchcache

import (
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

// state is the newest state of every object: either the source's own tree,
// shared, or a tree that the cache applies the events to.
//
//	Replace{State}  ─▶ view
//	Changes{}       ─▶ window only        the next State includes them
//	Changes{State}  ─▶ window, view
//	publication     ─▶ events that are only in the window are applied
type state struct {
	// view is the state, unless tree is set.
	view *store.TreeView
	tree *store.Tree
	// shared: the source shares its state.
	shared bool
	// applied is the position in the window up to which the state has the events.
	applied store.Seq
}

// newState returns the listed state, which includes all events of the window.
func newState(u reflector.Update, indexes []store.Attribute, w store.WindowView) state {
	s := state{applied: w.Next()}
	if s.adopt(u.State, indexes) {
		return s
	}
	s.tree = store.NewTree(indexes...)
	s.tree.Load(u.Objects)
	for o := range u.State.All("", "") { // the source lacks an index
		s.tree.Put(o)
	}
	return s
}

// adopt makes the source's state the cache's, if there is one and it has all
// indexes, and reports whether it did.
func (s *state) adopt(source *store.TreeView, indexes []store.Attribute) bool {
	for _, a := range indexes {
		if !source.Indexed(a) {
			return false
		}
	}
	if source == nil {
		return false
	}
	s.view, s.tree, s.shared = source, nil, true
	return true
}

// appliedTo records that the state has all the events of the window.
func (s *state) appliedTo(w store.WindowView) { s.applied = w.Next() }

// newest returns the state at the end of the window.
func (s *state) newest(w store.WindowView) *store.TreeView {
	if s.applied < w.Next() {
		s.own(w)
	}
	if s.tree != nil {
		return s.tree.View()
	}
	return s.view
}

// own returns the state at the end of the window as a tree of the cache's own, which it
// makes if there is none.
func (s *state) own(w store.WindowView) *store.Tree {
	if s.tree == nil {
		s.tree = store.TreeOf(s.view)
	}
	for s.applied < w.Next() {
		events, _ := w.Read(s.applied)
		for _, ev := range events {
			s.tree.Apply(ev)
		}
		s.applied += store.Seq(len(events))
	}
	return s.tree
}

// apply applies ev, the event after those in the window. It returns the previous
// object and whether the event fits it; otherwise the state is unchanged.
func (s *state) apply(w store.WindowView, ev store.Event) (prev *store.Object, fits bool) {
	tree := s.own(w)
	prev = tree.Apply(ev)
	switch fits = ev.Type == store.Emitted || (prev == nil) == (ev.Type == store.Added); {
	case fits:
	case prev == nil:
		tree.Delete(ev.Object.Key)
	default:
		tree.Put(prev)
	}
	return prev, fits
}
