package judge

import (
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// An event or a bookmark that follows what a watch has left out says so, by the mark AfterGap, and the watch
// says how much that is. Emitted values are lost whenever the engine lists again; under Conflate a watch
// also leaves out changes.

// judgeGap checks that ev, which stands for itself alone, is marked AfterGap if a value that was
// emitted before it is lost, or a change since the event before it, and only if something is lost.
func (j *judge[T]) judgeGap(ev engine.Event[T]) error {
	if ev.Is(store.AfterGap) {
		if !j.mayLackEmission(ev) && !j.lacksSome(ev.Revision-1) {
			return j.fail(Genuine, "it says that something before it is lost, and nothing is")
		}
		return nil
	}
	if lost := j.missingEmission(ev); lost > 0 {
		return j.fail(Reliable, "it does not say that what was emitted at %d is lost", lost)
	}
	return j.judgeTold(ev.Revision - 1)
}

// judgeTold checks that a watch that conflates has left out no change since the last event,
// and up to through, unless that event stands for several.
func (j *judge[T]) judgeTold(through store.Revision) error {
	if j.Options.Policy != engine.Conflate || j.conflated {
		return nil
	}
	if lost := j.missed(max(j.begun, j.last), min(through, j.Newest()), j.Selects, j.Received); lost > 0 {
		return j.fail(Reliable, "it does not say that the change at %d is lost", lost)
	}
	return nil
}

// lacksSome reports whether a watch that conflates has not delivered every change up to through, or may
// not have. Changes that it does not select count, since the engine counts them.
func (j *judge[T]) lacksSome(through store.Revision) bool {
	start := min(j.begun, j.Earliest) // begun is the latest revision at which it can have started
	return j.Options.Policy == engine.Conflate && (j.parent != nil || uint64(through-min(start, through)) > j.delivered)
}

// mayLackEmission reports whether ev is an emitted value, and the engine may have lost another one
// since the one before it, whatever is selected: a change that it did not receive may have been one.
func (j *judge[T]) mayLackEmission(ev engine.Event[T]) bool {
	if ev.Type != store.Emitted {
		return false
	}
	for rev := ev.Revision - 1; rev > First; rev-- {
		if !j.Received(rev) {
			return true
		}
		if j.change(rev).kind == store.Emitted {
			break
		}
	}
	return j.parent != nil
}

// missingEmission returns the revision of an emitted value that is missing before ev, so that ev, if
// it is an emitted value, must be marked AfterGap; zero if none is. A value is missing if
// the engine did not receive it, or if a conflating watch has left it out. Values before
// the watch's start do not count, since the engine may not have followed storage yet.
func (j *judge[T]) missingEmission(ev engine.Event[T]) store.Revision {
	if ev.Type != store.Emitted {
		return 0
	}
	others := false // an emitted value in between, which is not selected, may have the mark instead
	for rev := ev.Revision - 1; rev > j.begun; rev-- {
		c := j.change(rev)
		if c.kind != store.Emitted {
			continue
		}
		switch _, _, shown := c.selectedAs(j.Selects); {
		case !j.Received(rev):
			if others {
				return 0
			}
			return rev
		case shown && !j.emitted[rev] && j.Options.Policy == engine.Conflate:
			return rev
		case shown || j.Options.Policy != engine.Conflate:
			return 0
		}
		others = true
	}
	return 0
}

// judgeLost checks the number of lost events that the watch reports: it must include every emitted
// value that is missing and every other change, except those that an event stands for, and be no
// higher than the number of all changes. If no value is emitted after a missing one, no event can tell
// of it.
func (j *judge[T]) judgeLost() error {
	var values, away uint64
	for rev := j.begun + 1; rev <= j.position; rev++ {
		c := j.change(rev)
		if _, _, shown := c.selectedAs(j.Selects); !shown || !j.Received(rev) {
			continue
		}
		if away++; c.kind == store.Emitted && !j.emitted[rev] {
			values++
		}
	}
	away -= min(away, j.accounted)
	start := j.begun
	if j.Options.From == 0 || j.Options.InitialState {
		start = min(start, j.Earliest) // begun is the latest revision at which it can have started
	}
	switch all := uint64(j.Newest() - min(start, j.Newest())); {
	case values > j.Lost:
		return j.fail(Reliable, "%d values that were emitted did not come, and it says that it has lost %d", values, j.Lost)
	case away > j.Lost:
		return j.fail(Reliable, "%d events did not come, and it says that it has lost %d", away, j.Lost)
	case j.Lost > 0 && j.Options.Policy != engine.Conflate:
		return j.fail(Reliable, "it says that it has lost %d events, which was not requested", j.Lost)
	case j.Lost > all && j.parent == nil: // it may have lost some of a history that has ended
		return j.fail(Reliable, "it says that it has lost %d events, and there were %d", j.Lost, all)
	}
	return nil
}
