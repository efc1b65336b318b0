package dispatcher_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

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
	f := newFixtureWith(t, window.Limits{MaxEvents: 4})
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
	f := newFixtureWith(t, window.Limits{MaxEvents: 8, ChunkSize: 8})
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

func TestRound_CountsTheEventsThatItReads(t *testing.T) {
	f := newFixture(t)
	f.write(2, 3)
	f.write(4)
	require.EqualValues(t, 3, f.stats.Events.Load(), "without a watch")
	f.selecting(store.FilterOptions{Key: "b"})
	f.write(5, 6)
	require.EqualValues(t, 5, f.stats.Events.Load(), "whether or not they are for a watch")
}
