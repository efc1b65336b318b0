package audit

import (
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
)

// Trail is what a watcher has seen, in constant space: stretches of revisions,
// each with how many events there were and what their revisions add up to, and
// likewise the states that it was given to start with. It belongs to its watcher.
// The zero value has seen nothing.
type Trail struct {
	closed []stretch
	open   stretch
	// begun: there is an open stretch.
	begun bool
	// resync: an event stood for several, so that the open stretch is over, and
	// the next event that stands for itself begins another.
	resync bool
	// last is the newest revision that was seen.
	last engine.Revision
	// states are those that it was given whole, initial what has come so far of
	// one that is not complete.
	states  []state
	initial tally
	known   *knowledge // nil unless it is to remember

	// Conflated is how many events stood for several, Disordered how many came
	// twice or out of order.
	Conflated, Disordered uint64
	// broken is the first thing that must not be.
	broken string
}

// stretch is a run of revisions without a gap: (after, through].
type stretch struct {
	after, through engine.Revision
	events         uint64
	sum            uint64
}

// state is what there was, it was said, at a revision.
type state struct {
	at engine.Revision
	tally
}

// Anew says that a state is about to come. One that did not come to its end it
// forgets.
func (t *Trail) Anew() {
	t.initial = tally{}
	t.known.anew()
}

// Listed starts a stretch after a list.
func (t *Trail) Listed(list *engine.List[content.Item]) {
	given := state{at: list.Revision}
	t.known.anew()
	for _, o := range list.Items {
		given.add(o.Revision)
		t.known.learn(&engine.Event[content.Item]{Type: engine.Added, Object: o})
	}
	t.states = append(t.states, given)
	t.Begin(list.Revision)
}

// Begin starts a stretch after a revision.
func (t *Trail) Begin(after engine.Revision) {
	t.End()
	t.known.found(after)
	t.open, t.begun, t.resync = stretch{after: after, through: after}, true, false
	t.last = max(t.last, after)
}

// End closes the open stretch where it is.
func (t *Trail) End() {
	if t.begun {
		t.closed = append(t.closed, t.open)
	}
	t.begun = false
}

// Reach moves the open stretch on to a revision: there was nothing else up to it.
func (t *Trail) Reach(rev engine.Revision) {
	if t.begun && !t.resync {
		t.open.through = max(t.open.through, rev)
	}
}

// At returns the revision that has been seen up to; begun is false if there is no
// stretch yet to resume.
func (t *Trail) At() (through engine.Revision, begun bool) { return t.open.through, t.begun }

// Settle moves the trail on to where a watch stopped. Behind events that stood
// for several, another stretch begins there.
func (t *Trail) Settle(at engine.Revision) {
	switch {
	case t.resync && at > 0:
		t.Begin(at)
	case at > 0:
		t.Reach(at)
	}
}

// See takes in one event.
func (t *Trail) See(ev *engine.Event[content.Item]) {
	t.known.learn(ev)
	switch {
	case ev.Is(engine.Initial):
		t.initial.add(ev.Revision)
	case ev.Type == engine.Bookmark:
		t.bookmark(ev)
	case ev.Is(engine.Conflated):
		t.Conflated++
		t.resync = true
	case ev.Is(engine.Synthetic):
		t.last = max(t.last, ev.Revision)
	default:
		t.change(ev)
	}
}

func (t *Trail) bookmark(ev *engine.Event[content.Item]) {
	if ev.Is(engine.InitialEnd) {
		t.states = append(t.states, state{ev.Revision, t.initial})
		t.initial = tally{}
		t.Begin(ev.Revision)
	}
	t.last = max(t.last, ev.Revision)
	t.Reach(ev.Revision)
}

func (t *Trail) change(ev *engine.Event[content.Item]) {
	if ev.Revision <= t.last && !t.resync {
		t.Disordered++
		if t.broken == "" {
			t.broken = fmt.Sprintf("got %s at revision %d after revision %d", ev.Type, ev.Revision, t.last)
		}
		return
	}
	if t.resync {
		t.Begin(ev.Revision - 1)
	}
	t.last = max(t.last, ev.Revision)
	t.Reach(ev.Revision)
	t.open.events++
	t.open.sum += scramble(ev.Revision)
}

// scramble spreads a revision over all bits, so that different sets of as many
// revisions hardly ever have one sum.
func scramble(rev engine.Revision) uint64 {
	x := uint64(rev) * 0x9e3779b97f4a7c15
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return x ^ x>>32
}
