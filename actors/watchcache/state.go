package watchcache

import (
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// MaxUnapplied is how many events a published snapshot may leave for its readers to
// apply. With more, a read after a time without reads takes longer; with fewer, each
// write copies more tree nodes, even where nothing reads.
const MaxUnapplied = 64

// state is the newest state of every object, as far as it is known: the events after
// base are applied when the state is asked for, or when there are too many of them.
//
//	Replace{State}  ─▶ base
//	Changes{}       ─▶ window, and tree if the source does not share its state
//	Changes{State}  ─▶ window, base
//	publication     ─▶ base, with the number of events after it
type state struct {
	// base is the state at position at of the window: the source's own, or a view of
	// tree, or what a reader has made of these.
	base *tree.View
	at   window.Seq
	// tree has all events of the window. It is nil if the source shares its state.
	tree *tree.Tree
}

// newState returns the listed state. The caller sets at.
func newState(u reflector.Update, indexes []store.Attribute) state {
	if usable(u.State, indexes) {
		return state{base: u.State}
	}
	objects := tree.New(indexes...)
	objects.Load(u.Objects)
	for o := range u.State.All("", "") { // the source lacks an index
		objects.Put(o)
	}
	return state{base: objects.View(), tree: objects}
}

// usable reports whether the source gives its state, with all indexes.
func usable(source *tree.View, indexes []store.Attribute) bool {
	for _, a := range indexes {
		if !source.Indexed(a) {
			return false
		}
	}
	return source != nil
}

// newest returns the state at the end of the window.
func (s *state) newest(w window.View) *tree.View {
	if s.at < w.Next() {
		if s.tree != nil {
			s.base = s.tree.View()
		} else {
			now := window.Snapshot{Base: s.base, Unapplied: s.unapplied(w), Window: w}
			s.base = now.State()
		}
		s.at = w.Next()
	}
	return s.base
}

// publish puts the state at the end of its window into next. It continues from what
// readers have made of last, the snapshot before.
func (s *state) publish(last, next *window.Snapshot) {
	if made, at := last.Known(); at > s.at {
		s.base, s.at = made, at
	}
	if s.unapplied(next.Window) > MaxUnapplied {
		s.newest(next.Window)
	}
	next.Base, next.Unapplied = s.base, s.unapplied(next.Window)
}

// unapplied returns how many events of the window base lacks.
func (s *state) unapplied(w window.View) int32 { return int32(w.Next() - s.at) }

// apply applies ev, the event after those in the window, to the tree. It returns the
// previous object and whether the event fits it; otherwise the tree is unchanged.
func (s *state) apply(ev store.Event) (prev *store.Object, fits bool) {
	prev = s.tree.Apply(ev)
	switch fits = ev.Type == store.Emitted || (prev == nil) == (ev.Type == store.Added); {
	case fits:
	case prev == nil:
		s.tree.Delete(ev.Object.Key)
	default:
		s.tree.Put(prev)
	}
	return prev, fits
}
