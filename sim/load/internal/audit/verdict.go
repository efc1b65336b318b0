package audit

import (
	"fmt"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Verdict is what a trail is found to lack, or to have too much.
type Verdict struct {
	// Lost is how many events the watcher neither saw nor was told of.
	Lost uint64
	// Broken is the first thing that must not be, "" if there is none.
	Broken string
}

// Verdict compares a trail that has ended with what watchers of one of Expect's
// selections must see.
func (x *Expected) Verdict(sel scenario.Selection, t *Trail) (v Verdict) {
	v.Broken = t.broken
	for _, s := range t.closed {
		events, sum := x.by[sel].due(s, x.ledger.gaps)
		switch {
		case s.events < events:
			v.Lost += events - s.events
		case s.events > events && v.Broken == "":
			v.Broken = fmt.Sprintf("saw %d events in revisions %d to %d, of which %d are for it", s.events, s.after+1, s.through, events)
		case s.events == events && s.sum != sum && v.Broken == "":
			v.Broken = fmt.Sprintf("saw as many events in revisions %d to %d as are for it, but others", s.after+1, s.through)
		}
	}
	for _, given := range t.states {
		x.by[sel].compare(given, &v)
	}
	return v
}

// compare compares a listed state with the expected one. An object missing from it is
// lost, since no event will deliver it.
func (a *audience) compare(given state, v *Verdict) {
	want := a.at(given.at)
	switch {
	case given.objects < want.objects:
		v.Lost += want.objects - given.objects
	case v.Broken != "" || given.tally == want:
	case given.objects > want.objects:
		v.Broken = fmt.Sprintf("was given %d objects as the state at revision %d, when there were %d for it", given.objects, given.at, want.objects)
	default:
		v.Broken = fmt.Sprintf("was given as many objects as the state at revision %d as there were for it, but others", given.at)
	}
}
