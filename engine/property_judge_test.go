package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
)

// record is all that is known of one watch from outside.
type record struct {
	name  string
	want  want
	opts  engine.WatchOptions
	watch *engine.Watch[thing]
	// from and until bound the revision that the watch started at: what the
	// cache had reached before the call, and what storage had after it.
	from, until engine.Revision
	// first is the revision that a watch of the last events starts after.
	first engine.Revision
	// handled watches get their events by themselves.
	handled bool
	events  []engine.Event[thing]
	// claims are what Watch.Revision said, and after how many events.
	claims []claim
	// drained: the consumer has been given all there is.
	drained bool
	end     error
}

// claim says that everything up to revision was delivered within the first n
// events.
type claim struct {
	n        int
	revision engine.Revision
}

// judge holds a record against the truth, event by event.
type judge struct {
	*truth
	*record
	// have is the state that the consumer has made of its events, position the
	// revision that it is complete up to.
	have     versions
	position engine.Revision
}

// verdict returns what is wrong with a record, nil if nothing is.
func (t *truth) verdict(r *record) error {
	j := &judge{truth: t, record: r, have: versions{}}
	first, err := j.begin()
	if err != nil || j.position > t.newest() {
		return err
	}
	for i := first; ; i++ {
		if err := j.honour(i); err != nil {
			return err
		}
		if i == len(r.events) {
			break
		}
		if err := j.event(r.events[i]); err != nil {
			return fmt.Errorf("event %d, %v: %w", i, r.events[i], err)
		}
	}
	if r.drained && r.end == nil {
		return j.complete(t.newest(), "after everything was read")
	}
	return nil
}

// begin finds where the watch started and takes its initial state. It returns
// the index of the first event behind that.
func (j *judge) begin() (int, error) {
	switch {
	case j.opts.InitialState:
		return j.initial()
	case j.opts.Last > 0:
		j.position = j.first
	case j.opts.From > 0:
		j.position = j.opts.From
		if j.position > j.newest() {
			return 0, j.silent()
		}
	default:
		j.position = j.latestStart()
	}
	j.have = j.view(j.position, j.want.match)
	return 0, nil
}

// silent: a watch whose start has not come has nothing.
func (j *judge) silent() error {
	if len(j.events) > 0 {
		return fmt.Errorf("it starts at %d, which has not come, but has %v", j.position, j.events[0])
	}
	return nil
}

// latestStart is the latest moment at which a watch from "now" can have
// started: it may have been any between call and return.
func (j *judge) latestStart() engine.Revision {
	return max(j.from, min(j.until, j.bound(0)))
}

// initial checks the initial state (row 153: in key order, no newer than the
// state's revision) and finds the revision that it is of.
func (j *judge) initial() (int, error) {
	n, last := 0, ""
	for ; n < len(j.events) && j.events[n].Is(engine.Initial); n++ {
		ev := j.events[n]
		if ev.Type != engine.Added || ev.Key() <= last {
			return 0, fmt.Errorf("initial event %v after key %q", ev, last)
		}
		last = ev.Key()
		j.have[last] = ev.Object.Revision
	}
	whole := n < len(j.events) || j.drained && j.end == nil
	for rev := min(j.until, j.bound(n)); rev >= j.from; rev-- {
		if j.stateIs(rev, whole) {
			j.position = rev
			return n, nil
		}
	}
	return 0, fmt.Errorf("initial state %v is not that of any revision from %d to %d (bound %d)", j.have, j.from, j.until, j.bound(n))
}

// bound is the latest revision that the watch can have been at before event n.
func (j *judge) bound(n int) engine.Revision {
	if n == len(j.events) {
		return j.until
	}
	if next := j.events[n]; next.Type != engine.Bookmark {
		return next.Revision - 1
	}
	return j.events[n].Revision
}

// stateIs reports whether what the consumer has is the state at rev or, unless
// it is whole, its beginning.
func (j *judge) stateIs(rev engine.Revision, whole bool) bool {
	view := j.view(rev, j.want.match)
	if !whole {
		have := j.have.keys()
		for _, key := range view.keys()[min(len(have), len(view)):] {
			delete(view, key)
		}
	}
	return maps.Equal(view, j.have)
}

// honour checks what the watch claimed after n events: that it could be resumed
// from there.
func (j *judge) honour(n int) error {
	for _, c := range j.claims {
		if c.n != n || c.revision < j.position || c.revision > j.newest() || !j.witnessed[c.revision] {
			continue
		}
		if err := j.complete(c.revision, fmt.Sprintf("Revision said %d after %d events", c.revision, n)); err != nil {
			return err
		}
	}
	return nil
}

// event judges the next one and applies it.
func (j *judge) event(ev engine.Event[thing]) error {
	switch {
	case ev.Type == engine.Bookmark:
		return j.bookmark(ev)
	case ev.Revision <= j.position:
		return fmt.Errorf("its revision is not above %d", j.position) // rows 153, 155
	case ev.Is(engine.Initial):
		return errors.New("the initial state was over")
	case ev.Marks == 0:
		if err := j.witnessedEvent(ev); err != nil {
			return err
		}
	case ev.Is(engine.Conflated) && j.opts.Policy != engine.Conflate:
		return errors.New("conflated, which nobody asked for")
	default:
		if err := j.skipped(ev.Revision - 1); err != nil {
			return err
		}
	}
	if err := j.apply(ev); err != nil {
		return err
	}
	j.position = ev.Revision
	return nil
}

// witnessedEvent: an event without marks is what happened at its revision, and
// nothing before it was left out (row 154).
func (j *judge) witnessedEvent(ev engine.Event[thing]) error {
	if ev.Revision > j.newest() || !j.witnessed[ev.Revision] {
		return errors.New("it was never seen happening, but has no mark")
	}
	if err := j.complete(ev.Revision-1, "before it"); err != nil {
		return err
	}
	kind, value, shown := j.change(ev.Revision).seen(j.want.match)
	switch {
	case !shown:
		return errors.New("the selection does not show it")
	case kind != ev.Type || value != ev.Object.Value || ev.Object.Revision != ev.Revision:
		return fmt.Errorf("it should be %v of %v", kind, value)
	case (ev.Prev != nil) != (kind == engine.Modified || kind == engine.Deleted):
		return fmt.Errorf("its previous state is %v", ev.Prev)
	case ev.Prev != nil && ev.Prev.Value != *j.change(ev.Revision).was:
		return fmt.Errorf("its previous state is %v, not %v", ev.Prev.Value, *j.change(ev.Revision).was)
	}
	return nil
}

// bookmark: everything up to its revision was delivered before it (row 155).
func (j *judge) bookmark(ev engine.Event[thing]) error {
	if ev.Revision < j.position {
		return fmt.Errorf("the watch was at %d already", j.position)
	}
	return j.complete(ev.Revision, "at the bookmark")
}

// complete: by the revision rev nothing was left out, and the consumer has the
// state of rev (row 156). The watch stands at rev then.
func (j *judge) complete(rev engine.Revision, when string) error {
	if rev > j.newest() {
		return fmt.Errorf("%s: revision %d has not come", when, rev)
	}
	if err := j.skipped(rev); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	if view := j.view(rev, j.want.match); !maps.Equal(view, j.have) {
		return fmt.Errorf("%s: the consumer has %v, at revision %d it should be %v", when, j.have, rev, view)
	}
	j.position = max(j.position, rev)
	return nil
}

// skipped: only a conflating watch may leave out what was seen happening.
func (j *judge) skipped(through engine.Revision) error {
	if j.opts.Policy == engine.Conflate {
		return nil
	}
	if rev := j.missed(j.position, through, j.want.match); rev != 0 {
		return fmt.Errorf("revision %d is missing", rev)
	}
	return nil
}

// apply changes what the consumer has, and checks that the event's type fits.
func (j *judge) apply(ev engine.Event[thing]) error {
	_, there := j.have[ev.Key()]
	if ev.Type != engine.Emitted && there != slices.Contains([]engine.EventType{engine.Modified, engine.Deleted}, ev.Type) {
		return fmt.Errorf("the consumer has %v", j.have)
	}
	switch ev.Type {
	case engine.Added, engine.Modified:
		j.have[ev.Key()] = ev.Object.Revision
	case engine.Deleted:
		delete(j.have, ev.Key())
	}
	return nil
}
