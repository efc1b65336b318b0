package judge

import "github.com/watchmill/watchmill/engine"

// Trail is what a consumer has received, over any number of watches, in constant
// space: where a [Record] has every event, a trail has stretches of revisions and
// digests of what was received in each. It is for loads of many watches and
// events.
//
// Within a stretch every event must have come, in order and once. Between two
// stretches the consumer knows that it has missed something: it listed or, by the policy
// Conflate, got events that stand for several, or one that is marked [engine.AfterGap]. With
// [Trail.KeepObjects] a trail also has the state that the events add up to.
//
// The zero value has received nothing. A trail belongs to one goroutine at a time.
type Trail[T any] struct {
	// Name is what failures call the consumer.
	Name string
	// Policy is that of its watches. By all but Conflate they may leave out nothing.
	Policy engine.Policy
	// Conflated is how many events stood for several.
	Conflated uint64
	// Disordered is how many events came twice or out of order.
	Disordered uint64

	closed []stretch
	open   stretch
	// begun: there is an open stretch.
	begun bool
	// resync: events were left out, so the next event that stands for itself alone begins
	// another stretch.
	resync bool
	last   engine.Revision // the newest that was received
	// states are the states that were received completely; initial is the part of the
	// next one that has been received.
	states  []stateDigest
	initial digest
	objects *objects[T] // nil without KeepObjects
	failure *Failure    // the first
}

// stretch is what was received of the revisions (after, through].
type stretch struct {
	after, through engine.Revision
	received       digest
}

// stateDigest is the digest of a state that was received as that of a revision.
type stateDigest struct {
	at engine.Revision
	digest
}

// objects are the state that a consumer's events add up to.
type objects[T any] struct {
	byKey map[string]*engine.Object[T]
	// since is the revision after which every change was received, zero if a complete
	// state was received, too; based says that it has been set.
	since engine.Revision
	based bool
}

// KeepObjects makes the trail keep the newest object of each key, for [Trail.Outdated]. It
// must be called before any other method.
func (t *Trail[T]) KeepObjects() { t.objects = &objects[T]{byKey: map[string]*engine.Object[T]{}} }

// Objects returns the objects by key, nil without KeepObjects.
func (t *Trail[T]) Objects() map[string]*engine.Object[T] {
	if t.objects == nil {
		return nil
	}
	return t.objects.byKey
}

// ReplaceObjects sets the objects that the consumer has, if it derives them from the events
// by other means than the trail. Without KeepObjects it does nothing.
func (t *Trail[T]) ReplaceObjects(byKey map[string]*engine.Object[T]) {
	if t.objects != nil {
		t.objects.byKey = byKey
	}
}

// ExpectState says that an initial state comes next. It discards an incomplete one from
// before.
func (t *Trail[T]) ExpectState() {
	t.initial = digest{}
	t.objects.reset()
}

// List starts a stretch after a list.
func (t *Trail[T]) List(list *engine.List[T]) {
	var received digest
	t.objects.reset()
	for _, o := range list.Items {
		received = received.plus(o.Revision)
		t.objects.apply(&engine.Event[T]{Type: engine.Added, Object: o})
	}
	t.states = append(t.states, stateDigest{list.Revision, received})
	t.Begin(list.Revision)
}

// Begin starts a stretch after a revision.
func (t *Trail[T]) Begin(after engine.Revision) {
	t.End()
	t.objects.base(after)
	t.open, t.begun, t.resync = stretch{after: after, through: after}, true, false
	t.last = max(t.last, after)
}

// End closes the open stretch at the last revision that it has reached.
func (t *Trail[T]) End() {
	if t.begun {
		t.closed = append(t.closed, t.open)
	}
	t.begun = false
}

// Reach extends the open stretch to a revision up to which everything has been received.
func (t *Trail[T]) Reach(rev engine.Revision) {
	if t.begun && !t.resync {
		t.open.through = max(t.open.through, rev)
	}
}

// At returns the revision up to which everything was received; false if there is
// no stretch yet to resume.
func (t *Trail[T]) At() (through engine.Revision, begun bool) { return t.open.through, t.begun }

// Position is the open stretch of a trail in constant space, so that a consumer that
// saves it can go on with the trail in another process.
type Position struct {
	// After is the revision after which the stretch begins, and Through that up to
	// which everything was received.
	After   engine.Revision `json:"after"`
	Through engine.Revision `json:"through"`
	// Count and Sum are the digest of what was received.
	Count uint64 `json:"count"`
	Sum   uint64 `json:"sum"`
}

// Position returns the open stretch; false if there is none, or if it has ended because an
// event stood for several. It does not include earlier stretches, so that only this trail
// can find what is wrong with those.
func (t *Trail[T]) Position() (Position, bool) {
	s := t.open
	return Position{s.after, s.through, s.received.count, s.received.sum}, t.begun && !t.resync
}

// Resume begins a trail with the position of another one and the state there, listed
// again, or nil if it is not known any more and the consumer has to list. It must come before any
// event.
func (t *Trail[T]) Resume(list *engine.List[T], p Position) {
	if list == nil {
		t.Begin(p.Through)
	} else {
		t.List(list)
	}
	t.open.after, t.open.received = p.After, digest{p.Count, p.Sum}
}

// Gap says that the consumer knows that its watch has left out events.
func (t *Trail[T]) Gap() {
	if t.Policy != engine.Conflate {
		t.fail(Reliable, "its watch has left out events by policy %v, up to revision %d", t.Policy, t.last)
		return
	}
	t.resync = true
}

// Stop extends the trail to the revision at which a watch stopped, zero if that is unknown.
// After events that stood for several, and after a gap, another stretch begins there.
func (t *Trail[T]) Stop(at engine.Revision) {
	switch {
	case t.resync && at > 0:
		t.Begin(at)
	case at > 0:
		t.Reach(at)
	}
}

// Receive adds an event.
func (t *Trail[T]) Receive(ev *engine.Event[T]) {
	t.objects.apply(ev)
	switch {
	case ev.Is(engine.Initial):
		t.initial = t.initial.plus(ev.Revision)
	case ev.Type == engine.Bookmark:
		t.bookmark(ev)
	case ev.Is(engine.Conflated):
		t.Conflated++
		t.Gap()
	case ev.Is(engine.Synthetic):
		t.last = max(t.last, ev.Revision)
	case ev.Is(engine.AfterGap) && t.Policy == engine.Conflate:
		t.Gap()
		t.change(ev)
	default:
		t.change(ev)
	}
}

func (t *Trail[T]) bookmark(ev *engine.Event[T]) {
	switch {
	case ev.Is(engine.InitialEnd):
		t.states = append(t.states, stateDigest{ev.Revision, t.initial})
		t.initial = digest{}
		t.Begin(ev.Revision)
	case ev.Is(engine.AfterGap) && t.Policy == engine.Conflate:
		t.Begin(ev.Revision)
	}
	t.last = max(t.last, ev.Revision)
	t.Reach(ev.Revision)
}

func (t *Trail[T]) change(ev *engine.Event[T]) {
	if ev.Revision <= t.last && !t.resync {
		t.Disordered++
		broken := Ordered
		if ev.Revision == t.last {
			broken = Unique
		}
		t.fail(broken, "it got %s at revision %d after revision %d", ev.Type, ev.Revision, t.last)
		return
	}
	if ev.Object != nil && ev.Object.Revision != ev.Revision {
		t.fail(Atomic, "it got %s at revision %d with an object of revision %d", ev.Type, ev.Revision, ev.Object.Revision)
	}
	if t.resync {
		t.Begin(ev.Revision - 1)
	}
	t.last = max(t.last, ev.Revision)
	t.Reach(ev.Revision)
	t.open.received = t.open.received.plus(ev.Revision)
}

// fail notes the first failure.
func (t *Trail[T]) fail(i Invariant, format string, args ...any) {
	if t.failure == nil {
		t.failure = Failed(i, t.Name, format, args...)
	}
}

// base sets the revision after which the objects are complete, unless it is set already.
func (o *objects[T]) base(since engine.Revision) {
	if o != nil && !o.based {
		o.since, o.based = since, true
	}
}

// reset starts over: the whole state comes next.
func (o *objects[T]) reset() {
	if o != nil {
		clear(o.byKey)
		o.since, o.based = 0, true
	}
}

func (o *objects[T]) apply(ev *engine.Event[T]) {
	switch {
	case o == nil || ev.Object == nil || ev.Type == engine.Emitted:
	case ev.Type == engine.Deleted:
		delete(o.byKey, ev.Object.Key)
	default:
		o.byKey[ev.Object.Key] = ev.Object
	}
}

// Verdict is how a trail differs from what was expected.
type Verdict struct {
	// Lost is how many events the consumer neither received nor learned that it
	// had missed.
	Lost uint64
	// Failure is the first other difference, nil if there is none.
	Failure *Failure
}

// Judge compares a trail that has ended with what watches of the selection must see. The
// selection must be one of those given to Expect.
func (t *Trail[T]) Judge(x *Expected, sel Selection) Verdict {
	var lost uint64
	gaps := x.ledger.missing()
	for _, s := range t.closed {
		want := x.bySelection[sel].visible(s.after, s.through, gaps)
		switch {
		case s.received.count < want.count:
			lost += want.count - s.received.count
		case s.received.count > want.count:
			t.fail(Filter, "it saw %d events in revisions %d to %d, of which %d are for it", s.received.count, s.after+1, s.through, want.count)
		case s.received != want:
			t.fail(Genuine, "it saw as many events in revisions %d to %d as are for it, but others", s.after+1, s.through)
		}
	}
	for _, s := range t.states {
		lost += t.judgeState(s, x.bySelection[sel].state(s.at))
	}
	return Verdict{lost, t.failure}
}

// judgeState compares a state with the expected one and returns how many objects
// are missing. They are lost, since no event will deliver them.
func (t *Trail[T]) judgeState(s stateDigest, want digest) (lost uint64) {
	switch {
	case s.count < want.count:
		return want.count - s.count
	case s.count > want.count:
		t.fail(InitialState, "it was given %d objects as the state at revision %d, when there were %d for it", s.count, s.at, want.count)
	case s.digest != want:
		t.fail(InitialState, "it was given as many objects as the state at revision %d as there were for it, but others", s.at)
	}
	return 0
}

// Outdated returns of how many objects the consumer, which has received
// everything, does not have the newest state; zero without KeepObjects.
func (t *Trail[T]) Outdated(x *Expected, sel Selection) (n uint64) {
	if t.objects == nil {
		return 0
	}
	if x.newest == nil {
		x.newest = x.ledger.NewestByKey()
	}
	for key, e := range x.newest {
		o, has := t.objects.byKey[key]
		is := x.bySelection[sel].matches(&e)
		if e.Revision > t.objects.since && (is != has || is && o.Revision != e.Revision) {
			n++
		}
	}
	return n
}
