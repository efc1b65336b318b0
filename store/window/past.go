package window

import (
	"context"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// StateAt returns the state at exactly revision rev, with the indexes of State.
// See [Snapshot.StateBefore] for what it costs.
//
// The error is an [*store.ExpiredError] if rev was trimmed or is in a gap (see
// [View.Seek]), a [*store.FutureError] if rev is in the future, and otherwise
// ctx's cause.
func (s *Snapshot) StateAt(ctx context.Context, rev store.Revision) (*tree.View, error) {
	if rev > s.Revision {
		return nil, &store.FutureError{Requested: rev, Current: s.Revision}
	}
	at, err := s.Window.Seek(rev)
	if err != nil {
		return nil, err
	}
	return s.StateBefore(ctx, at)
}

// StateBefore returns the state before the event at position at; at Next that is
// State. Unlike [Snapshot.StateAt] it also has states within a gap: those of a
// reader that applied the events before at.
//
//	known:        rebuilt                              State
//	                 │                                   │
//	events       ────▼────────────at─────────────────────▼
//	                              ◀── undo, or roll forward from the nearer one
//
// It starts from the nearest known state, takes about half a microsecond for each
// event in between and another half for each object that they changed, and ends
// early with ctx. The window caches expensive results, so that the pages of a list
// cost it once, and drops them with the events before them. If the window has
// dropped them by then, the snapshot caches them instead.
//
// The error is an [*store.ExpiredError] if at is not in the window any more, a
// [*store.FutureError] if it is after Next, and otherwise ctx's cause.
func (s *Snapshot) StateBefore(ctx context.Context, at Seq) (*tree.View, error) {
	switch v := s.Window; {
	case at < v.first:
		return nil, &store.ExpiredError{Requested: v.RevisionAt(at), Oldest: v.floor}
	case at > v.next:
		return nil, &store.FutureError{Requested: v.revision + 1, Current: v.revision}
	case at == v.next:
		return s.State(), nil
	}
	known := s.Window.rebuilt.nearest(at, s.Window.first, s.base())
	known = s.past.Load().nearest(at, s.Window.first, known)
	if known.at == at {
		return known.state, nil
	}
	objects := tree.From(known.state)
	var err error
	if known.at < at {
		err = s.Window.roll(ctx, objects, known.at, at)
	} else {
		err = s.Window.undo(ctx, objects, at, known.at)
	}
	if err != nil {
		return nil, err
	}
	state := objects.View()
	switch {
	case s.Window.rebuilt.forgot(at):
		s.keep(at, state)
	case s.Window.next-at >= worthKeeping:
		s.Window.rebuilt.keep(at, state)
	}
	return state, nil
}

// keep caches a rebuilt state for as long as the snapshot is in use: the window moves past
// many watches at once, each of which may ask for the state at its position.
func (s *Snapshot) keep(at Seq, state *tree.View) {
	past := s.past.Load()
	if past == nil {
		past = new(rebuiltStates)
		if !s.past.CompareAndSwap(nil, past) {
			past = s.past.Load()
		}
	}
	past.keep(at, state)
}

// roll applies the events from position start up to end to t.
func (v View) roll(ctx context.Context, t *tree.Tree, start, end Seq) error {
	return v.each(ctx, start, end, func(ev store.Event) { t.Apply(ev) })
}

// undo reverts the events from position start up to end in t, the state after them.
// The first of a key's events has the object to go back to; its later ones are skipped.
func (v View) undo(ctx context.Context, t *tree.Tree, start, end Seq) error {
	undone := map[string]struct{}{}
	return v.each(ctx, start, end, func(ev store.Event) {
		if ev.Type == store.Emitted {
			return
		}
		if _, later := undone[ev.Object.Key]; later {
			return
		}
		undone[ev.Object.Key] = struct{}{}
		if ev.Prev != nil {
			t.Put(ev.Prev)
		} else {
			t.Delete(ev.Object.Key)
		}
	})
}

// each calls do with the events from position start up to end, in order, until ctx
// ends. Events that the window does not have are an [*store.ExpiredError].
func (v View) each(ctx context.Context, start, end Seq, do func(store.Event)) error {
	for start < end {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		events, ok := v.Read(start)
		if !ok || len(events) == 0 {
			return &store.ExpiredError{Requested: v.revision, Oldest: v.floor}
		}
		events = events[:min(len(events), int(end-start))]
		for _, ev := range events {
			do(ev)
		}
		start += Seq(len(events))
	}
	return nil
}

const (
	// worthKeeping is the distance in events from the newest state at which a
	// rebuilt state is cached: rebuilding takes about a millisecond.
	worthKeeping = 1024
	// maxRebuilt is how many rebuilt states a window caches: that many lists of
	// the past can be read page by page concurrently without rebuilding.
	maxRebuilt = 4
)

// rebuiltStates is an LRU cache of rebuilt past states, the last used first, which
// readers share. A nil one caches nothing.
type rebuiltStates struct {
	mu     sync.Mutex
	states []knownState
	// first is the window's: a reader of an older view may rebuild a state before it.
	first Seq
}

// knownState is a state that needs no event to be applied, and its position in the window.
type knownState struct {
	at    Seq
	state *tree.View
}

// nearest returns the state nearest to at among newest and those cached from first
// on and before newest.
func (r *rebuiltStates) nearest(at, first Seq, newest knownState) knownState {
	best := newest
	if r == nil {
		return best
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found := -1
	for i, s := range r.states {
		if s.at >= first && s.at < newest.at && distance(s.at, at) < distance(best.at, at) {
			best, found = s, i
		}
	}
	if found > 0 {
		copy(r.states[1:], r.states[:found])
		r.states[0] = best
	}
	return best
}

func distance(a, b Seq) Seq { return max(a, b) - min(a, b) }

// keep caches a state that the window reaches back to, evicting the least recently used one.
func (r *rebuiltStates) keep(at Seq, state *tree.View) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at < r.first {
		return
	}
	r.states = slices.DeleteFunc(r.states, func(s knownState) bool { return s.at == at })
	if len(r.states) == maxRebuilt {
		r.states = r.states[:maxRebuilt-1]
	}
	r.states = slices.Insert(r.states, 0, knownState{at, state})
}

// forgot reports whether the window has dropped events after position at.
func (r *rebuiltStates) forgot(at Seq) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return at < r.first
}

// forget drops the states before position first.
func (r *rebuiltStates) forget(first Seq) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = first
	r.states = slices.DeleteFunc(r.states, func(s knownState) bool { return s.at < first })
}

// bytes returns the size of the states' nodes; the window holds the objects
// anyway. A state far from its neighbours shares few nodes with them.
func (r *rebuiltStates) bytes() (n int64) {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		n += s.state.NodeBytes()
	}
	return n
}
