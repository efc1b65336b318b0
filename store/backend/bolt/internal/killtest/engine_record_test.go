package killtest_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// segment is what a journal has of one watch.
type segment struct {
	beginning
	events []engine.Event[thing]
	// saved are the checkpoints in the journal.
	saved   []judge.Claim
	expired bool
}

// segments returns the watches in a journal.
func segments(entries []entry) (all []segment) {
	for _, one := range entries {
		if one.Begin != nil {
			all = append(all, segment{beginning: *one.Begin})
		}
		if len(all) == 0 {
			continue // what is left of earlier lives
		}
		s := &all[len(all)-1]
		if one.Event != nil {
			s.events = append(s.events, *one.Event)
		}
		if one.Saved != nil {
			s.saved = append(s.saved, judge.Claim{Events: len(s.events), Revision: one.Saved.Revision})
		}
		s.expired = s.expired || one.Expired
	}
	return all
}

// consumer judges what a consumer was given in a life, and what it has saved: a watch must
// begin where the one before it, maybe in another life, has saved to have come to.
func (a *audit) consumer(c *consumer, life int, before engine.Revision, drained bool) error {
	entries, err := c.entries(a.dir)
	if err != nil {
		return err
	}
	now, err := c.checkpoint(a.dir)
	if err != nil {
		return err
	}
	all := segments(entries)
	for i, s := range all {
		name := fmt.Sprintf("watch %d of %q in life %d", i+1, c.name, life)
		next := cmp.Or(now, s.From)
		if i+1 < len(all) {
			next = all[i+1].From
		}
		if i == 0 && s.From.Revision != cmp.Or(a.saved[c.name].Revision, judge.First) {
			return judge.Failed(judge.Resumable, name, "it begins at %v, what was saved is %q", s.From, a.saved[c.name])
		}
		if err := a.watch(c, s, name, next.Revision, before, drained && i+1 == len(all)); err != nil {
			return err
		}
	}
	a.saved[c.name] = now
	return nil
}

// watch judges one watch, whose consumer goes on from next.
func (a *audit) watch(c *consumer, s segment, name string, next, before engine.Revision, drained bool) error {
	if s.State && c.saves != savesNothing {
		a.expired++
		if s.From.Revision >= a.compacted {
			return judge.Failed(judge.Refusals, name, "%v is too old for it, the file has the history after %d", s.From, a.compacted)
		}
	}
	r := &judge.Record[thing]{
		Name: name, Selects: c.selects, Options: c.at(s.From.Revision, s.State),
		Earliest: before, Latest: a.history.Newest(), Events: s.events, Claims: s.saved, Drained: drained,
	}
	if s.expired {
		r.Ends = []error{engine.ErrExpired}
		if r.MayExpire(a.compacted) {
			r.Causes = r.Ends
		}
	}
	handled := handledThrough(s.events, next)
	switch {
	case next == s.From.Revision || c.saves == savesNothing:
	case c.saves == savesInFile:
		r.Claims = append(r.Claims, judge.Claim{Events: handled, Revision: next})
	case len(s.saved) == 0 || s.saved[len(s.saved)-1].Revision != next:
		return judge.Failed(judge.Resumable, name, "it has saved %v, and goes on from %d", s.saved, next)
	}
	if again := len(s.events) - handled; c.saves != savesNothing {
		if again > 0 && c.saves == savesWithEvent {
			return judge.Failed(judge.Unique, name, "%v was handled, and comes again after %d", s.events[handled], next)
		}
		a.again += again
	}
	a.watches++
	a.events += len(s.events)
	if !s.State {
		a.inherited += handledThrough(s.events, before)
	}
	return a.history.Judge(r)
}

// handledThrough returns how many of the events come before those after a revision. A state that
// has not come to its end does not count.
func handledThrough(events []engine.Event[thing], rev engine.Revision) int {
	n := slices.IndexFunc(events, func(ev engine.Event[thing]) bool { return ev.Revision > rev })
	if n < 0 {
		return len(events)
	}
	return n
}
