package load

import (
	"fmt"

	"github.com/watchmill/watchmill/engine"
)

// trail is what a watcher has seen, in constant space: stretches of revisions,
// each with how many events there were and what their revisions add up to. It
// belongs to its watcher.
type trail struct {
	closed []stretch
	open   stretch
	// begun: there is an open stretch.
	begun bool
	// resync: an event stood for several, so that the open stretch is over, and
	// the next event that stands for itself begins another.
	resync bool
	// last is the newest revision that was seen.
	last engine.Revision

	conflated, synthetic, disordered uint64
	// broken is the first thing that must not be.
	broken string
}

// stretch is a run of revisions without a gap: (after, through].
type stretch struct {
	after, through engine.Revision
	events         uint64
	sum            uint64
}

// begin starts a stretch after a revision.
func (t *trail) begin(after engine.Revision) {
	t.end()
	t.open, t.begun, t.resync = stretch{after: after, through: after}, true, false
	t.last = max(t.last, after)
}

// end closes the open stretch where it is.
func (t *trail) end() {
	if t.begun {
		t.closed = append(t.closed, t.open)
	}
	t.begun = false
}

// reach moves the open stretch on to a revision: there was nothing else up to it.
func (t *trail) reach(rev engine.Revision) {
	if t.begun && !t.resync {
		t.open.through = max(t.open.through, rev)
	}
}

// see takes in one event.
func (t *trail) see(ev *engine.Event[item]) {
	switch {
	case ev.Is(engine.Initial):
	case ev.Type == engine.Bookmark:
		t.bookmark(ev)
	case ev.Is(engine.Conflated):
		t.conflated++
		t.resync = true
	case ev.Is(engine.Synthetic):
		t.synthetic++
		t.last = max(t.last, ev.Revision)
	default:
		t.change(ev)
	}
}

func (t *trail) bookmark(ev *engine.Event[item]) {
	if ev.Is(engine.InitialEnd) {
		t.begin(ev.Revision)
	}
	t.last = max(t.last, ev.Revision)
	t.reach(ev.Revision)
}

func (t *trail) change(ev *engine.Event[item]) {
	if ev.Revision <= t.last && !t.resync {
		t.disordered++
		if t.broken == "" {
			t.broken = fmt.Sprintf("got %s at revision %d after revision %d", ev.Type, ev.Revision, t.last)
		}
		return
	}
	if t.resync {
		t.begin(ev.Revision - 1)
	}
	t.last = max(t.last, ev.Revision)
	t.reach(ev.Revision)
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
