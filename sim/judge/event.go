package judge

import (
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// judgeClaims checks the claims of the watch up to the one after n events: a new watch from the
// claimed revision must neither lose nor repeat an event. While the initial state is not
// complete, the watch must claim no revision. If the engine found the claimed revision by listing, the
// state there is not known: then no event up to it may come later.
func (j *judge[T]) judgeClaims(n int) error {
	for ; j.claimed < len(j.Claims) && j.Claims[j.claimed].Events <= n; j.claimed++ {
		c := j.Claims[j.claimed]
		c.Revision = j.Before(c.Revision)
		switch {
		case c.Events < j.initials && c.Revision > 0:
			return j.fail(Resumable, "Revision said %d after %d events, the initial state has %d", c.Revision, c.Events, j.initials)
		case c.Revision > max(j.Newest(), j.begun): // storage may have gone back to before the watch's start
			return j.fail(Resumable, "Revision said %d after %d events, which has not come", c.Revision, c.Events)
		case c.Events == n && c.Revision < j.resumable:
			return j.fail(Resumable, "Revision said %d after %d events, it could go on from %d", c.Revision, c.Events, j.resumable)
		case c.Events == n && c.Revision >= j.position && !j.Received(c.Revision):
			if later := j.next(n); later != nil && later.Revision <= c.Revision {
				return j.fail(Resumable, "Revision said %d after %d events, and then %v came", c.Revision, c.Events, later)
			}
		}
		if c.Events < n || c.Revision < j.position || !j.Received(c.Revision) {
			continue
		}
		if err := j.judgeComplete(Resumable, c.Revision, fmt.Sprintf("Revision said %d after %d events", c.Revision, n)); err != nil {
			return err
		}
	}
	return nil
}

// next returns the first event from index n on that is no bookmark, nil if there is none.
func (j *judge[T]) next(n int) *engine.Event[T] {
	for i := n; i < len(j.Events); i++ {
		if j.Events[i].Type != store.Bookmark {
			return &j.Events[i]
		}
	}
	return nil
}

// judgeEvent judges the event at index and applies it to the consumer's state.
func (j *judge[T]) judgeEvent(ev engine.Event[T]) error {
	switch {
	case j.mustEndInitialState(j.index) && ev.Type != store.Bookmark:
		return j.fail(Bookmarkable, "no bookmark has ended the initial state")
	case ev.Type == store.Bookmark:
		return j.judgeBookmark(ev)
	case ev.Revision <= j.position:
		return j.orderFailure(ev)
	case ev.Is(store.Initial):
		return j.fail(InitialState, "the initial state was over")
	case ev.Is(store.AfterGap) && ev.Type != store.Emitted && j.Options.Policy != engine.Conflate:
		return j.fail(Genuine, "no such mark is for an event of that type")
	}
	judgeOne := j.judgeMarked
	if ev.Marks&^store.AfterGap == 0 {
		judgeOne = j.judgeUnmarked
	}
	if err := judgeOne(ev); err != nil {
		return err
	}
	if err := j.apply(ev); err != nil {
		return err
	}
	if j.delivered++; ev.Is(store.Conflated) || j.Received(ev.Revision) {
		j.accounted++
	}
	j.last, j.conflated = ev.Revision, ev.Is(store.Conflated)
	j.position = ev.Revision
	if !ev.Is(store.Conflated) && j.Shown(ev.Revision) == ev.Revision {
		j.resumable = ev.Revision
	}
	return nil
}

// orderFailure returns the failure for an event whose revision is not above the position.
func (j *judge[T]) orderFailure(ev engine.Event[T]) error {
	for i := j.index - 1; i >= 0; i-- {
		if was := j.Events[i]; was.Revision == ev.Revision && was.Key() == ev.Key() && was.Type == ev.Type {
			return j.fail(Unique, "it came before, as event %d", i)
		}
	}
	switch {
	case ev.Revision <= j.bookmarked:
		return j.fail(Bookmarkable, "a bookmark said that everything up to %d was delivered", j.bookmarked)
	case ev.Revision <= j.begun && j.position == j.begun:
		return j.fail(Resumable, "the watch starts after %d", j.begun)
	case ev.Revision == j.position:
		return j.fail(Atomic, "there was another event of that revision")
	}
	return j.fail(Ordered, "its revision is not above %d", j.position)
}

// judgeUnmarked judges an event without marks: it must be the change at its revision, and no
// change before it may be missing. It also judges an event that is marked AfterGap, since
// that mark is about earlier events.
func (j *judge[T]) judgeUnmarked(ev engine.Event[T]) error {
	if !j.Received(ev.Revision) {
		return j.fail(Genuine, "it was never seen happening, but has no mark")
	}
	gap := Reliable
	if j.position == j.begun && j.Options.From+store.Revision(j.Options.Last) > 0 && !j.Options.InitialState {
		gap = Resumable
	}
	if err := j.judgeComplete(gap, ev.Revision-1, "before it"); err != nil {
		return err
	}
	if err := j.judgeGap(ev); err != nil {
		return err
	}
	c := j.change(ev.Revision)
	kind, value, shown := c.selectedAs(j.Selects)
	switch {
	case !shown:
		return j.fail(Filter, "the selection does not show it")
	case kind != ev.Type && (kind == store.Added || ev.Type == store.Added):
		return j.fail(IsCreate, "it should be %v", kind)
	case kind != ev.Type:
		return j.fail(Filter, "it should be %v", kind)
	case ev.Object.Revision != ev.Revision:
		return j.fail(Atomic, "its object is of revision %d", ev.Object.Revision)
	case ev.Key() != c.key || !j.equal(ev.Object.Value, *value):
		return j.fail(Genuine, "its value is %v, but %v of %q was written", ev.Object.Value, *value, c.key)
	case ev.Object.Created != c.created:
		return j.fail(Genuine, "its object was created at %d, not at %d", ev.Object.Created, c.created)
	case !haveTimes(ev.Object, c.written, j.expiry(c, kind)):
		return j.fail(Genuine, "its object is %s, not written at %v, expires at %v", times(ev.Object), c.written, j.expiry(c, kind))
	}
	if ev.Type == store.Emitted {
		j.emitted[ev.Revision] = true
	}
	return j.judgePrevious(ev)
}

// expiry returns when the object of a change expires that is shown with a type: a deletion has the object of
// before, even if that only left the selection.
func (j *judge[T]) expiry(c *change[T], shown store.EventType) time.Time {
	if shown == store.Deleted {
		return c.expired
	}
	return c.expires
}

// judgePrevious checks the previous object of an event: only a modified or deleted object has
// one, and it is the one that the consumer has.
func (j *judge[T]) judgePrevious(ev engine.Event[T]) error {
	had := ev.Type == store.Modified || ev.Type == store.Deleted
	has, there := j.have[ev.Key()]
	switch {
	case ev.Prev == nil && had:
		return j.fail(PrevValue, "its previous state is missing")
	case ev.Prev != nil && !had:
		return j.fail(PrevValue, "it has a previous state: %v", ev.Prev.Value)
	case !had || !there: // apply reports a change of an object that is not there
		return nil
	}
	was := j.at(ev.Key(), has)
	switch {
	case ev.Prev.Key != ev.Key() || ev.Prev.Revision != has || ev.Prev.Created != was.created:
		return j.fail(PrevValue, "its previous state is %s, not that of %d, created at %d", identity(ev.Prev), has, was.created)
	case !j.equal(ev.Prev.Value, *was.value):
		return j.fail(PrevValue, "its previous state is %v, not %v", ev.Prev.Value, *was.value)
	case !was.dates(ev.Prev):
		return j.fail(PrevValue, "its previous state is %s, not written at %v, expires at %v", times(ev.Prev), was.written, was.expires)
	}
	return nil
}

// identity describes o by its key and its revisions.
func identity[T any](o *engine.Object[T]) string {
	return fmt.Sprintf("%q of %d, created at %d", o.Key, o.Revision, o.Created)
}

// judgeMarked judges an event with a mark. The event stands for changes that are not
// shown, none of which the watch has to show, and its object must be one that was
// written.
func (j *judge[T]) judgeMarked(ev engine.Event[T]) error {
	switch {
	case ev.Is(store.Conflated) && j.Options.Policy != engine.Conflate:
		return j.fail(Reliable, "it is conflated, which was not requested")
	case ev.Type == store.Emitted:
		return j.fail(Genuine, "no such mark is for an event of that type")
	}
	if err := j.judgeNoneMissing(Reliable, ev.Revision-1, "before it"); err != nil {
		return err
	}
	if ev.Object.Revision != ev.Revision {
		return j.fail(Atomic, "its object is of revision %d", ev.Object.Revision)
	}
	if !j.Selects(ev.Object.Value) {
		return j.fail(Filter, "the selection does not show it")
	}
	var err error
	switch ev.Type {
	case store.Added, store.Modified:
		err = j.judgeObject(ev.Object)
	case store.Deleted:
		err = j.judgeDeletion(ev)
	}
	if err == nil {
		err = j.judgePrevious(ev)
	}
	if err == nil && ev.Is(store.Synthetic) && j.Received(ev.Revision) {
		err = j.fail(Genuine, "it was seen happening, and is marked as if it was not")
	}
	return err
}

// judgeDeletion judges the object of a deletion with a mark: it must be the one that the consumer
// has, except for its revision.
func (j *judge[T]) judgeDeletion(ev engine.Event[T]) error {
	has, there := j.have[ev.Key()]
	if !there {
		return nil // apply reports it
	}
	if was := j.at(ev.Key(), has); ev.Object.Created != was.created || !j.equal(ev.Object.Value, *was.value) {
		return j.fail(Genuine, "its object is %v, created at %d, not the last state: %v, created at %d",
			ev.Object.Value, ev.Object.Created, *was.value, was.created)
	}
	return nil
}

// judgeObject checks that the object is one that was written at its revision.
func (j *judge[T]) judgeObject(o *engine.Object[T]) error {
	switch v := j.at(o.Key, o.Revision); {
	case j.same(o, v):
		return nil
	case !v.dates(o):
		return j.fail(Genuine, "its object is %s, not written at %v, expires at %v", times(o), v.written, v.expires)
	}
	return j.fail(Genuine, "no such object was written: %v, %s", o.Value, identity(o))
}

// mustEndInitialState reports whether event n must be the bookmark that ends the initial
// state.
func (j *judge[T]) mustEndInitialState(n int) bool {
	return j.Options.Bookmarks && j.Options.InitialState && n == j.initials
}

// judgeBookmark judges a bookmark: everything up to its revision was delivered before it.
func (j *judge[T]) judgeBookmark(ev engine.Event[T]) error {
	switch {
	case !j.Options.Bookmarks:
		return j.fail(Bookmarkable, "bookmarks were not requested")
	case j.mustEndInitialState(j.index) && ev.Marks != store.InitialEnd:
		return j.fail(Bookmarkable, "it does not say that the initial state ends")
	case !j.mustEndInitialState(j.index) && ev.Is(store.InitialEnd):
		return j.fail(Bookmarkable, "no initial state ends here")
	case ev.Marks&^(store.InitialEnd|store.AfterGap) != 0, ev.Is(store.AfterGap) && j.Options.Policy != engine.Conflate:
		return j.fail(Bookmarkable, "no such mark is for a bookmark")
	case ev.Revision < j.position:
		return j.fail(Bookmarkable, "the watch was at %d already", j.position)
	case ev.Is(store.AfterGap) && !j.lacksSome(ev.Revision):
		return j.fail(Genuine, "it says that something before it is lost, and nothing is")
	}
	if !ev.Is(store.AfterGap) {
		if err := j.judgeTold(ev.Revision); err != nil {
			return err
		}
	}
	j.bookmarked, j.resumable, j.last, j.conflated = ev.Revision, ev.Revision, ev.Revision, false
	return j.judgeComplete(Bookmarkable, ev.Revision, "at the bookmark")
}

// judgeComplete checks that nothing up to rev is missing and that the consumer has the state at
// rev. If so, it sets the position to rev.
func (j *judge[T]) judgeComplete(i Invariant, rev store.Revision, when string) error {
	if rev > j.Newest() {
		return j.fail(i, "%s: revision %d has not come", when, rev)
	}
	if err := j.judgeNoneMissing(i, rev, when); err != nil {
		return err
	}
	j.advance(rev)
	switch {
	case j.differences == 0:
	case i != Bookmarkable && j.comesLater(j.position, rev):
		return j.fail(Ordered, "%s: the consumer has %v, at revision %d it should be %v, and what it lacks comes later", when, j.have, rev, j.model)
	default:
		return j.fail(i, "%s: the consumer has %v, at revision %d it should be %v", when, j.have, rev, j.model)
	}
	j.position = max(j.position, rev)
	return nil
}

// judgeNoneMissing checks that no selected change that was received is missing after the position
// and up to through. A conflating watch may leave out any.
func (j *judge[T]) judgeNoneMissing(i Invariant, through store.Revision, when string) error {
	if j.Options.Policy == engine.Conflate {
		return nil
	}
	rev := j.missed(j.position, min(through, j.Newest()), j.Selects, j.Received)
	switch {
	case rev == 0:
		return nil
	case i != Bookmarkable && j.comesLater(rev-1, rev):
		return j.fail(Ordered, "%s: revision %d is missing, and comes later", when, rev)
	}
	return j.fail(i, "%s: revision %d is missing", when, rev)
}

// comesLater reports whether an event of a revision in (after, through] follows the event
// that is judged.
func (j *judge[T]) comesLater(after, through store.Revision) bool {
	for i := j.index; i >= 0 && i < len(j.Events); i++ {
		if ev := j.Events[i]; ev.Type != store.Bookmark && after < ev.Revision && ev.Revision <= through {
			return true
		}
	}
	return false
}

// apply applies an event to the consumer's state, and checks that its type fits that state.
func (j *judge[T]) apply(ev engine.Event[T]) error {
	_, there := j.have[ev.Key()]
	switch ev.Type {
	case store.Added, store.Modified:
		if there != (ev.Type == store.Modified) {
			return j.fail(IsCreate, "the consumer has %v", j.have)
		}
		j.set(j.have, ev.Key(), ev.Object.Revision)
	case store.Deleted:
		if !there {
			return j.fail(Reliable, "the consumer does not have it: %v", j.have)
		}
		j.set(j.have, ev.Key(), 0)
	}
	return nil
}

// advance brings the model to the state at rev.
func (j *judge[T]) advance(rev store.Revision) {
	for ; j.modelRevision < rev; j.modelRevision++ {
		at := j.modelRevision + 1
		c := j.change(at)
		switch kind, _, _ := c.selectedAs(j.Selects); kind {
		case store.Added, store.Modified:
			j.set(j.model, c.key, at)
		case store.Deleted:
			j.set(j.model, c.key, 0)
		}
	}
}

// set sets the revision of a key in s, which is have or model, or removes the key for zero.
// It keeps differences up to date.
func (j *judge[T]) set(s State, key string, rev store.Revision) {
	if j.have[key] != j.model[key] {
		j.differences--
	}
	if rev == 0 {
		delete(s, key)
	} else {
		s[key] = rev
	}
	if j.have[key] != j.model[key] {
		j.differences++
	}
}
