package dispatcher_test

import (
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// errIdle is what a read returns that would wait.
var errIdle = errors.New("there is nothing to read")

// watch has the dispatcher take in a watch that starts at the newest snapshot.
func (f *fixture) watch(opts watcher.Options) *watcher.Watch {
	snap := f.published.Load()
	return f.watchFrom(opts, watcher.Start{Next: snap.Window.Next(), After: snap.Revision})
}

func (f *fixture) watchFrom(opts watcher.Options, start watcher.Start) *watcher.Watch {
	return f.admit(opts, dispatcher.Register{Start: start, Snapshot: f.published.Load()})
}

// selecting is watch for one with a filter.
func (f *fixture) selecting(opts store.FilterOptions) *watcher.Watch {
	filter, err := store.NewFilter(nil, opts)
	require.NoError(f, err)
	snap := f.published.Load()
	start := watcher.Start{Next: snap.Window.Next(), After: snap.Revision}
	return f.admit(watcher.Options{}, dispatcher.Register{Filter: filter, Start: start, Snapshot: snap})
}

// admit sends m with a new watch, which must be taken in.
func (f *fixture) admit(opts watcher.Options, m dispatcher.Register) *watcher.Watch {
	w := watcher.New(&f.feed, opts)
	f.admitThis(w, m)
	return w
}

// admitThis sends m with a watch, which must be taken in.
func (f *fixture) admitThis(w *watcher.Watch, m dispatcher.Register) {
	reply := make(chan error, 1)
	m.Watch, m.Reply = w.Member(), reply
	f.ref.Tell(m)
	f.executor.Run()
	require.NoError(f, <-reply)
}

// admitHandler has the dispatcher take in a watch with a handler on the pool, which calls
// handle with the revision of each event from the newest snapshot on.
func (f *fixture) admitHandler(filter *store.Filter, handle func(store.Revision)) *watcher.Watch {
	w := watcher.NewHandled(&f.feed, watcher.Options{OnPool: true}, func(d *watcher.Delivery) {
		for i, ev := range d.Events() {
			require.True(f, d.Begin(i))
			handle(ev.Revision)
		}
	})
	snap := f.published.Load()
	f.admitThis(w, dispatcher.Register{
		Filter: filter, Snapshot: snap, Start: watcher.Start{Next: snap.Window.Next(), After: 1},
	})
	return w
}

// write commits a change at each of the revisions, and moves the window.
func (f *fixture) write(revisions ...store.Revision) {
	for _, rev := range revisions {
		ev := added(rev)
		f.window.Append(ev, f.clock.Now())
		if f.state != nil {
			f.state.Put(ev.Object)
		}
	}
	f.window.Trim(f.clock.Now())
	f.commit()
	f.executor.Run()
}

// pass lets time pass.
func (f *fixture) pass(d time.Duration) {
	f.clock.Advance(d)
	f.executor.Run()
}

// read returns the revisions of what the watch has for its consumer, bookmarks as
// negative ones, and why it ended, nil if it has not.
func (f *fixture) read(w *watcher.Watch) (revisions []int, end error) {
	for {
		events, err := w.Next(f.Context())
		f.executor.Run()
		switch {
		case errors.Is(err, errIdle):
			return revisions, nil
		case err != nil:
			return revisions, err
		}
		for _, ev := range events {
			rev := int(ev.Revision)
			if ev.Type == store.Bookmark {
				rev = -rev
			}
			revisions = append(revisions, rev)
		}
	}
}

// has requires what a watch that goes on has for its consumer.
func (f *fixture) has(w *watcher.Watch, revisions ...int) {
	f.Helper()
	got, end := f.read(w)
	require.NoError(f, end)
	require.Equal(f, revisions, got)
}

// nextObject reads the next events of a watch, keeps none of them, and tells whether the first one's
// object is kept elsewhere.
func (f *fixture) nextObject(w *watcher.Watch) weak.Pointer[store.Object] {
	f.Helper()
	events, err := w.Next(f.Context())
	require.NoError(f, err)
	return weak.Make(events[0].Object)
}

func TestRound_AnyNumberOfCommitsIsOne(t *testing.T) {
	f := newFixture(t)
	w, before := f.watch(watcher.Options{}), f.stats.Rounds.Load()
	for rev := store.Revision(2); rev <= 5; rev++ {
		f.window.Append(added(rev), time.Time{})
		f.commit()
	}
	f.executor.Run()
	require.Equal(t, before+1, f.stats.Rounds.Load())
	f.has(w, 2, 3, 4, 5)
}

func TestRound_WatchIsGivenWhatItsFilterMatches(t *testing.T) {
	f := newFixture(t)
	of, other := f.selecting(store.FilterOptions{Key: "a"}), f.selecting(store.FilterOptions{Key: "b"})
	f.write(2)
	f.has(of, 2)
	f.has(other)
}

// The streams that a round has found events for are not kept from the next round, which
// finds some for fewer of them.
func TestRound_KeepsNothingOfAStreamWithoutWatches(t *testing.T) {
	f := newFixtureWith(t, store.WindowLimits{MaxEvents: 4})
	goesOn, ends := f.selecting(store.FilterOptions{Key: "a"}), f.selecting(store.FilterOptions{Prefix: "a"})
	f.has(goesOn) // and follows its stream from here
	f.write(2)
	object := f.nextObject(ends)
	f.has(goesOn, 2)
	ends.Stop()
	f.executor.Run()
	for rev := range store.Revision(1000) { // more than the window and the other stream keep
		f.write(3 + rev)
		f.has(goesOn, int(3+rev))
	}
	runtime.GC()
	require.Nil(t, object.Value())
	runtime.KeepAlive(f)
}

// A watch that resumes reads parts of the window that are shared with all others. Neither its
// stream nor what it keeps for a consumer that is slow holds the events beside its own.
func TestResume_KeepsNothingOfTheWindowButItsOwnEvents(t *testing.T) {
	f := newFixtureWith(t, store.WindowLimits{MaxEvents: 8, ChunkSize: 8})
	other := added(2)
	other.Object.Key = "other"
	f.window.Append(other, time.Time{})
	object := weak.Make(other.Object)
	other = store.Event{}
	f.write(3)
	filter, err := store.NewFilter(nil, store.FilterOptions{Key: "a"})
	require.NoError(t, err)
	slow := f.admit(watcher.Options{Buffer: 1}, dispatcher.Register{Filter: filter, Snapshot: f.published.Load()})
	quick := f.admit(watcher.Options{}, dispatcher.Register{Filter: filter, Snapshot: f.published.Load()})
	f.has(quick, 3)
	for rev := range store.Revision(16) {
		ev := added(4 + rev)
		ev.Object.Key = "other"
		f.window.Append(ev, time.Time{})
		f.window.Trim(time.Time{})
		f.commit()
		f.executor.Run()
	}
	for object.Value() != nil {
		runtime.GC()
	}
	f.has(slow, 3)
	runtime.KeepAlive(f)
}

// What is told that a watch is stalled, such as a logger, may fail: others are signalled all the
// same.
func TestRound_SignalsAllThoughOnStallFails(t *testing.T) {
	f := newFixture(t)
	stalls := 0
	f.onStall = func(*watcher.Member) {
		stalls++
		panic("no log")
	}
	slow, told := f.watch(watcher.Options{Buffer: 1}), 0
	snap := f.published.Load()
	waits := watcher.NewNotified(&f.feed, watcher.Options{}, func() { told++ })
	f.admitThis(waits, dispatcher.Register{Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap})
	_, _, err := waits.Take(1)
	require.NoError(t, err)
	f.write(2, 3, 4)
	f.ref.Tell(dispatcher.Committed{}) // as the parent does after a failure
	f.executor.Run()
	require.True(t, slow.Stalled())
	require.Equal(t, 1, stalls)
	require.Equal(t, 1, told)
	f.write(5)
	require.Equal(t, 1, stalls, "it has not stalled again")
}

// A watch comes after the commits that were told of before it, though no round has
// been for them yet.
func TestRegister_CatchesUpFirst(t *testing.T) {
	f := newFixture(t)
	f.window.Append(added(2), time.Time{})
	snap := f.commit()
	w, reply := watcher.New(&f.feed, watcher.Options{}), make(chan error, 1)
	f.ref.Tell(dispatcher.Register{Watch: w.Member(), Start: watcher.Start{Next: snap.Window.Next(), After: 2}, Snapshot: snap, Reply: reply})
	f.window.Append(added(3), time.Time{})
	f.commit()
	f.executor.Run()
	require.NoError(t, <-reply)
	f.has(w, 3)
}

func TestRegister_FutureStartLeavesOutWhatComesBefore(t *testing.T) {
	f := newFixture(t)
	w := f.watchFrom(watcher.Options{}, watcher.Start{Pending: 3})
	f.write(2)
	f.has(w)
	f.write(3, 4)
	f.has(w, 4)
}

// small is a window of two events.
var small = store.WindowLimits{MaxEvents: 2, ChunkSize: 1}

// The window leaves behind a consumer that does not read: it is given as much as its
// buffer kept, and then told.
func TestWindowMoves_ParkedWatchExpiresBehindItsBuffer(t *testing.T) {
	f := newFixtureWith(t, small)
	w := f.watch(watcher.Options{Buffer: 1})
	for rev := store.Revision(2); rev <= 9; rev++ {
		f.write(rev)
	}
	got, end := f.read(w)
	require.ErrorIs(t, end, store.ErrExpired)
	require.Equal(t, []int{2}, got)
	require.EqualValues(t, 1, f.stats.Expired.Load())
	require.Zero(t, f.stats.Watches.Load())
}

func TestWindowMoves_ReaderInTimeGoesOn(t *testing.T) {
	f := newFixtureWith(t, small)
	w := f.watch(watcher.Options{Buffer: 1})
	for rev := store.Revision(2); rev <= 9; rev++ {
		f.write(rev)
		f.has(w, int(rev))
	}
	require.EqualValues(t, 1, f.stats.Watches.Load())
}

// Those that do not read share a budget under Terminate. One that has read meanwhile
// draws again, and others do not draw.
func TestSlow_OnlyTerminateEndsWhatDoesNotRead(t *testing.T) {
	f := newFixture(t)
	stuck := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
	parked := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Park})
	f.write(2, 3, 4, 5)
	f.pass(time.Second)
	require.ErrorIs(t, stuck.Err(), watcher.ErrSlowConsumer)
	require.NoError(t, parked.Err())
	require.True(t, parked.Stalled())
	require.EqualValues(t, 1, f.stats.Stalled.Load())
	require.EqualValues(t, 1, f.stats.Watches.Load())
	f.has(parked, 2, 3, 4, 5)
	require.Zero(t, f.stats.Stalled.Load(), "it has caught up")
}

// What a slow watch has not used of the budget is there for the next one.
func TestSlow_RestOfTheBudgetIsGivenBack(t *testing.T) {
	for name, leave := range map[string]func(*fixture, *watcher.Watch){
		"by one that catches up": func(f *fixture, w *watcher.Watch) { f.has(w, 2, 3, 4) },
		"by one that is stopped": func(f *fixture, w *watcher.Watch) {
			w.Stop()
			f.executor.Run()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.pass(2 * time.Second) // in which the budget fills up
			first := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
			f.write(2, 3, 4)
			f.pass(20 * time.Millisecond)
			leave(f, first)
			next := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Terminate})
			f.write(5, 6, 7)
			f.pass(70 * time.Millisecond)
			require.NoError(t, next.Err())
			f.pass(20 * time.Millisecond)
			require.ErrorIs(t, next.Err(), watcher.ErrSlowConsumer)
		})
	}
}

func TestBookmarks_ComeOnceAPeriodToWatchesWithTheOption(t *testing.T) {
	f := newFixture(t)
	asked, silent := f.watch(watcher.Options{Bookmarks: true}), f.watch(watcher.Options{})
	later := f.watchFrom(watcher.Options{Bookmarks: true}, watcher.Start{Pending: 9})
	f.write(2)
	f.has(asked, 2)
	f.pass(2 * dispatcher.DefaultBookmarkPeriod)
	f.has(asked, -2)
	f.has(silent, 2)
	f.has(later)
}

// Progress that was made while a consumer read its initial state is reported soon after, not a period later.
func TestBookmarks_ComeSoonAfterAnInitialStateThatTookLong(t *testing.T) {
	f := newFixture(t)
	f.state = store.NewTree()
	f.write(2)
	snap := f.published.Load()
	w := f.watchFrom(watcher.Options{Bookmarks: true}, watcher.Start{Next: snap.Window.Next(), After: 2, State: snap.State(), InitialEnd: true})
	f.progress(9)
	f.pass(2 * time.Second)
	f.has(w, 2, -2, -9)
}

// Time is counted only while there is a watch that wants bookmarks.
func TestBookmarks_TickEndsWithTheirLastWatch(t *testing.T) {
	f := newFixture(t)
	require.Zero(t, f.clock.Pending())
	w := f.watch(watcher.Options{Bookmarks: true})
	require.Equal(t, 1, f.clock.Pending())
	w.Stop()
	f.executor.Run()
	f.pass(2 * time.Second)
	require.Zero(t, f.clock.Pending())
}

func TestDeadline_EndsTheWatchAndNoOther(t *testing.T) {
	f := newFixture(t)
	snap := f.published.Load()
	until := func(d watcher.Deadline) *watcher.Watch {
		return f.admit(watcher.Options{}, dispatcher.Register{Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Deadline: d, Snapshot: snap})
	}
	due := until(watcher.Deadline{At: f.clock.Now().Add(time.Minute)})
	byContext := until(watcher.Deadline{At: f.clock.Now().Add(time.Minute), ByContext: true})
	other := f.watch(watcher.Options{})
	f.pass(time.Minute - time.Second)
	require.NoError(t, due.Err())
	f.pass(time.Second)
	require.ErrorIs(t, due.Err(), watcher.ErrDeadline)
	require.NoError(t, other.Err())
	require.NoError(t, byContext.Err(), "its context ends it")
	require.EqualValues(t, 2, f.stats.Watches.Load())
}

// Everything committed before is given, also to a watch that is registered late.
func TestDrain_EndsWatchesThatHaveEverything(t *testing.T) {
	f := newFixture(t)
	reason, reply := errors.New("draining"), make(chan error, 1)
	behind, done, future := f.watch(watcher.Options{}), f.watch(watcher.Options{}), f.watchFrom(watcher.Options{}, watcher.Start{Pending: 9})
	f.write(2)
	f.has(done, 2)
	f.window.Append(added(3), time.Time{})
	snap := f.commit()
	f.ref.Tell(dispatcher.Drain{Reason: reason, Reply: reply})
	late, taken := watcher.New(&f.feed, watcher.Options{}), make(chan error, 1)
	f.ref.Tell(dispatcher.Register{Watch: late.Member(), Start: watcher.Start{Next: 1, After: 2}, Snapshot: snap, Reply: taken})
	f.executor.Run()
	require.NoError(t, <-reply)
	require.NoError(t, <-taken)
	require.ErrorIs(t, future.Err(), reason, "it is owed nothing")
	for w, want := range map[*watcher.Watch][]int{behind: {2, 3}, done: {3}, late: {3}} {
		got, end := f.read(w)
		require.Equal(t, want, got)
		require.ErrorIs(t, end, reason)
	}
	require.Zero(t, f.stats.Watches.Load())
}

// The engine waits for the answer, even if the dispatcher stops first.
func TestDrain_IsAnsweredWhenTheDispatcherStops(t *testing.T) {
	f := newFixture(t)
	reply := make(chan error, 1)
	f.ref.Tell(dispatcher.Drain{Reason: errors.New("draining"), Reply: reply})
	f.ref.Stop()
	f.executor.Run()
	require.Len(t, reply, 1)
	require.ErrorIs(t, <-reply, watcher.ErrEngineClosed)
}

// A consumer that has everything may never read again.
func TestDrain_EndsAtOnceWhatHasEverything(t *testing.T) {
	f := newFixture(t)
	reason := errors.New("draining")
	all, some := f.watch(watcher.Options{}), f.selecting(store.FilterOptions{Key: "a"})
	f.write(2)
	f.has(all, 2)
	f.has(some, 2)
	f.ref.Tell(dispatcher.Drain{Reason: reason})
	f.executor.Run()
	require.ErrorIs(t, all.Err(), reason)
	require.ErrorIs(t, some.Err(), reason)
	require.Zero(t, f.stats.Watches.Load())
}

// The engine sends Drain when it sees a snapshot, which may be before Committed comes.
func TestDrain_ComesAfterTheCommitOfWhatIsPublished(t *testing.T) {
	f := newFixture(t)
	reason := errors.New("draining")
	w := f.watch(watcher.Options{})
	f.window.Append(added(2), f.clock.Now())
	f.publish()
	f.ref.Tell(dispatcher.Drain{Reason: reason})
	f.executor.Run()
	got, end := f.read(w)
	require.Equal(t, []int{2}, got)
	require.ErrorIs(t, end, reason)
}

// Storage has gone back: whatever stood in the old history starts over.
func TestEpoch_EndsEveryWatchOfTheHistoryBefore(t *testing.T) {
	f := newFixture(t)
	w, future := f.watch(watcher.Options{Policy: watcher.Conflate}), f.watchFrom(watcher.Options{}, watcher.Start{Pending: 9})
	f.write(2)
	f.window.Reset(1)
	f.epoch++
	f.commit()
	f.executor.Run()
	for _, w := range []*watcher.Watch{w, future} {
		_, end := f.read(w)
		require.ErrorIs(t, end, store.ErrExpired)
	}
	require.Zero(t, f.stats.Watches.Load())
}

// A watch that the window has left behind is one that expired, also if storage then goes back.
func TestEpoch_CountsNoWatchTwice(t *testing.T) {
	f := newFixtureWith(t, small)
	f.watch(watcher.Options{Buffer: 1})
	f.write(2)
	f.write(3)
	f.write(4)
	f.write(5)
	require.EqualValues(t, 1, f.stats.Expired.Load())
	f.watch(watcher.Options{})
	f.window.Reset(1)
	f.epoch++
	f.commit()
	f.executor.Run()
	require.EqualValues(t, 2, f.stats.Expired.Load())
	require.Zero(t, f.stats.Watches.Load())
}

// A consumer that conflates and does not read is given the newest state of what has
// left the window, and goes on.
func TestWindowMoves_ConflatingWatchIsGivenTheNewestState(t *testing.T) {
	f := newFixtureWith(t, small)
	f.state = store.NewTree()
	conflating := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Conflate})
	for rev := store.Revision(2); rev <= 9; rev++ {
		f.write(rev)
	}
	f.has(conflating, 2, 9) // the first is in its buffer
	f.write(10)
	f.has(conflating, 10)
	require.NoError(t, conflating.Err())
	require.Zero(t, f.stats.Expired.Load())
	require.EqualValues(t, 1, f.stats.Watches.Load())
}

// failingClone gives the schema a Clone, which panics once each time that fails is set.
func (f *fixture) failingClone() (fails *bool) {
	fails = new(bool)
	f.schema.Clone = func(o *store.Object) *store.Object {
		if *fails {
			*fails = false
			panic("the schema's Clone fails")
		}
		clone := *o
		return &clone
	}
	return fails
}

// A round that fails halfway has found the events for some streams and not for others.
// The next one gives each watch all of them, once.
func TestRound_ThatFailsHalfwayIsMadeUpForByTheNext(t *testing.T) {
	f := newFixture(t)
	fails := f.failingClone()
	byKey, byLabel := f.selecting(store.FilterOptions{Key: "a"}), f.selecting(store.FilterOptions{Labels: "app=web"})
	all := f.watch(watcher.Options{})
	web := added(2)
	web.Object.Labels = store.LabelsOf(map[string]string{"app": "web"})
	f.append(web)
	for _, w := range []*watcher.Watch{byKey, byLabel, all} {
		f.has(w, 2) // and follows its stream
	}

	left := added(4) // a deletion to the watch by label, which has a copy of the last state
	left.Type, left.Prev = store.Modified, web.Object
	rounds := f.stats.Rounds.Load()
	*fails = true
	f.window.Append(added(3), f.clock.Now())
	f.append(left)
	require.False(t, *fails)
	require.Equal(t, rounds, f.stats.Rounds.Load(), "the round has failed")
	f.write(5)
	f.has(byKey, 3, 4, 5)
	f.has(byLabel, 4)
	f.has(all, 3, 4, 5)
	f.write(6)
	f.has(byKey, 6)
	f.has(byLabel)
	f.has(all, 6)
}

// Events are not held back until the next write, which may never come.
func TestRound_ThatFailsIsMadeUpForByAnyMessage(t *testing.T) {
	f := newFixture(t)
	fails := f.failingClone()
	byLabel, other := f.selecting(store.FilterOptions{Labels: "app=web"}), f.watch(watcher.Options{})
	web := added(2)
	web.Object.Labels = store.LabelsOf(map[string]string{"app": "web"})
	f.append(web)
	f.has(byLabel, 2)
	left := added(3) // a deletion to the watch by label, which has a copy of the last state
	left.Type, left.Prev = store.Modified, web.Object
	*fails = true
	f.append(left)
	require.False(t, *fails)
	f.has(byLabel)
	other.Stop()
	f.executor.Run()
	f.has(byLabel, 3)
}

// Storage may have ended for good, so there may be no other drain.
func TestDrain_WhoseRoundFailsEndsWatchesAfterTheNext(t *testing.T) {
	f := newFixture(t)
	fails := f.failingClone()
	*fails = true
	byLabel, all := f.selecting(store.FilterOptions{Labels: "app=web"}), f.watch(watcher.Options{})
	web := added(2)
	web.Object.Labels = store.LabelsOf(map[string]string{"app": "web"})
	f.append(web)
	left := added(3) // a deletion to the watch by label, which has a copy of the last state
	left.Type, left.Prev = store.Modified, web.Object
	f.window.Append(left, f.clock.Now())
	f.commit()
	reason, reply := errors.New("storage has ended"), make(chan error, 1)
	f.ref.Tell(dispatcher.Drain{Reason: reason, Reply: reply})
	f.executor.Run()
	require.False(t, *fails)
	require.Len(t, reply, 1, "a call waits for the answer")
	f.ref.Tell(dispatcher.Committed{}) // as the engine does
	f.executor.Run()
	for w, want := range map[*watcher.Watch][]int{byLabel: {2, 3}, all: {2, 3}} {
		got, end := f.read(w)
		require.Equal(t, want, got)
		require.ErrorIs(t, end, reason)
	}
}

// append commits one event.
func (f *fixture) append(ev store.Event) {
	f.window.Append(ev, f.clock.Now())
	f.commit()
	f.executor.Run()
}
