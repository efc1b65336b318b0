package watchcache

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// fixture is a cache that handles each message at once, and records what it reports.
type fixture struct {
	*testing.T
	seeded   *actors.Seeded
	clock    *clock.Virtual
	cache    *Cache
	begun    []dispatcher.Register
	relists  []reflector.Reason
	reported []error
	ready    int
	// readyAt is the revision of what was published when the cache last became ready.
	readyAt store.Revision
}

func newFixture(t *testing.T, cfg Config) *fixture {
	f := &fixture{T: t, seeded: actors.NewSeeded(1), clock: clock.NewVirtual(began)}
	system, err := actors.NewSystem(actors.SystemConfig{Executor: f.seeded, Clock: f.clock})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, system.Close(context.Background()))
		require.Zero(t, system.Timers())
	})
	cfg.Schema, cfg.Published, cfg.Stats = new(store.Schema), new(window.Published), new(Stats)
	cfg.Dispatcher = actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return collecting{&f.begun} }, actors.Options{})
	cfg.Relist = func(why reflector.Reason) { f.relists = append(f.relists, why) }
	cfg.Report = func(err error) { f.reported = append(f.reported, err) }
	cfg.OnReady = func(time.Duration) { f.ready, f.readyAt = f.ready+1, f.snapshot().Revision }
	f.cache = Spawn(system, f.clock, cfg)
	return f
}

func (f *fixture) offer(u reflector.Update) {
	f.Helper()
	require.Equal(f, actors.Accepted, f.cache.Offer(u))
	f.seeded.Run()
}

// list gives the cache a list of objects.
func (f *fixture) list(rev store.Revision, objects ...*store.Object) {
	f.Helper()
	f.offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Requested, Revision: rev, Objects: objects})
}

// change gives the cache one event.
func (f *fixture) change(what store.EventType, o *store.Object) {
	f.Helper()
	f.offer(reflector.Update{Kind: reflector.Changes, Revision: o.Revision, Events: []store.Event{{Type: what, Revision: o.Revision, Object: o}}})
}

func (f *fixture) wait(rev store.Revision, limit time.Duration) <-chan error {
	reply := make(chan error, 1)
	f.cache.Wait(Wait{Revision: rev, Until: f.clock.Now().Add(limit), Reply: reply})
	f.seeded.Run()
	return reply
}

func (f *fixture) pass(d time.Duration) {
	f.clock.Advance(d)
	f.seeded.Run()
}

func (f *fixture) snapshot() *window.Snapshot { return f.cache.published.Load() }

// events returns what is in the window.
func (f *fixture) events() (all []string) {
	w := f.snapshot().Window
	for at := w.First(); at < w.Next(); {
		events, ok := w.Read(at)
		require.True(f, ok)
		for _, ev := range events {
			all = append(all, ev.String())
		}
		at += window.Seq(len(events))
	}
	return all
}

func object(key string, rev store.Revision) *store.Object {
	return &store.Object{Key: key, Revision: rev, Created: rev}
}

// A source that the cache holds back would wait for ever if it were not told to go on.
func TestOffer_CacheThatWasFullTellsWhenItHasRoom(t *testing.T) {
	told := 0
	f := newFixture(t, Config{OnRoom: func() { told++ }})
	progress := reflector.Update{Kind: reflector.Progress, Revision: 1}
	for f.cache.Offer(progress) == actors.Accepted {
	}
	require.Zero(t, told)
	f.seeded.Run()
	require.Equal(t, 1, told)
	f.offer(progress)
}

// An event that does not fit shows that an earlier one was lost.
func TestChanges_ThatDoNotFitTheStateHaveItListedAnew(t *testing.T) {
	for name, what := range map[string]struct {
		event  store.EventType
		object *store.Object
	}{
		"added twice":     {store.Added, object("a", 6)},
		"never added":     {store.Modified, object("b", 6)},
		"deleted unknown": {store.Deleted, object("b", 6)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.list(5, object("a", 5))
			f.change(what.event, what.object)
			require.Equal(t, []reflector.Reason{reflector.Distrusted}, f.relists)
			require.ErrorIs(t, f.cache.Check(f.clock.Now()), ErrInconsistent)
			require.True(t, f.cache.Distrusted())
			require.Len(t, f.reported, 1)
			require.ErrorIs(t, f.reported[0], ErrInconsistent)
			f.change(store.Added, object("c", 7))
			require.Empty(t, f.events(), "neither it nor what follows is passed on")

			f.list(8, object("a", 5), object("c", 7))
			require.NoError(t, f.cache.Check(f.clock.Now()))
			require.Equal(t, []string{"ADDED c@7 synthetic"}, f.events())
		})
	}
}

// What fits before an event that does not has been published, with its revision: the list to come differs from that.
func TestChanges_BeforeOneThatDoesNotFitAreApplied(t *testing.T) {
	f, changed := newFixture(t, Config{}), &store.Object{Key: "a", Revision: 7, Created: 5}
	f.list(5, object("a", 5))
	f.offer(reflector.Update{Kind: reflector.Changes, Revision: 7, Events: []store.Event{
		{Type: store.Added, Revision: 6, Object: object("b", 6)}, {Type: store.Added, Revision: 7, Object: changed},
	}})
	require.Equal(t, []string{"ADDED b@6"}, f.events())
	require.EqualValues(t, 6, f.snapshot().Revision)
	f.list(7, changed, object("b", 6))
	require.Equal(t, []string{"ADDED b@6", "MODIFIED a@7 synthetic"}, f.events())
}

// The next emitted value says that a list has skipped some, even if a list that skipped none came between.
func TestRelist_ReportsSkippedValuesThoughTheNextSkipsNone(t *testing.T) {
	f := newFixture(t, Config{Emits: true, Contiguous: true})
	f.list(5)
	f.list(7)
	f.list(8, object("a", 8))
	f.change(store.Emitted, object("x", 9))
	f.change(store.Emitted, object("x", 10))
	require.Equal(t, []string{"ADDED a@8 synthetic", "EMITTED x@9 after-gap", "EMITTED x@10"}, f.events())
}

func TestRelist_AtTheSameRevisionSkipsNothing(t *testing.T) {
	f := newFixture(t, Config{Emits: true})
	f.list(5)
	f.list(5)
	f.change(store.Emitted, object("x", 6))
	require.Equal(t, []string{"EMITTED x@6"}, f.events())
}

// Calls wait until a warm start has read all the history up to the newest revision.
func TestWarmStart_AnswersCallsWhenItHasTheHistory(t *testing.T) {
	f := newFixture(t, Config{})
	waits := f.wait(5, time.Minute)
	f.offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 5, Until: 7})
	f.change(store.Added, object("a", 6))
	require.Empty(t, waits)
	require.False(t, f.cache.Ready())
	f.change(store.Added, object("b", 7))
	require.Len(t, waits, 1)
	require.NoError(t, <-waits)
	require.True(t, f.cache.Ready())
}

// Storage that goes back during a warm start may never come to the revision that it had.
func TestWarmStart_EndsWithAListOfTheNewestState(t *testing.T) {
	f := newFixture(t, Config{})
	f.offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 1, Until: 100})
	require.False(t, f.cache.Ready())
	f.list(50)
	require.True(t, f.cache.Ready())
}

// OnReady is called when the cache becomes ready, and again after an outage.
func TestReady_IsReportedOnceEachTime(t *testing.T) {
	f := newFixture(t, Config{})
	f.list(5)
	f.change(store.Added, object("a", 6))
	require.Equal(t, 1, f.ready)
	f.offer(reflector.Update{Kind: reflector.Unavailable, Err: ErrInconsistent})
	f.offer(reflector.Update{Kind: reflector.Progress, Revision: 6})
	f.change(store.Added, object("b", 7))
	require.Equal(t, 2, f.ready)
}

// A reader that finds the cache ready also finds the state.
func TestReady_ComesAfterTheState(t *testing.T) {
	f := newFixture(t, Config{})
	f.list(7)
	require.EqualValues(t, 7, f.readyAt)
	f.offer(reflector.Update{Kind: reflector.Unavailable, Err: ErrInconsistent})
	f.list(8)
	require.EqualValues(t, 8, f.readyAt)
}

// Storage may have gone back during an outage, even if no list shows it afterwards.
func TestDoubt_IsRaisedByAnOutageAndByAList(t *testing.T) {
	doubts := 0
	f := newFixture(t, Config{OnDoubt: func() { doubts++ }})
	f.list(5)
	before := doubts
	f.offer(reflector.Update{Kind: reflector.Unavailable, Err: ErrInconsistent})
	require.Equal(t, before+1, doubts)
	f.offer(reflector.Update{Kind: reflector.Progress, Revision: 6})
	require.Equal(t, before+1, doubts)
	f.list(7)
	require.Equal(t, before+2, doubts)
}

// Each call has a time limit of its own, whatever their order.
func TestWait_EachIsAnsweredInItsTime(t *testing.T) {
	f := newFixture(t, Config{})
	f.list(5)
	third, first, second := f.wait(6, 3*time.Second), f.wait(6, time.Second), f.wait(6, 2*time.Second)
	for _, next := range []<-chan error{first, second, third} {
		require.Empty(t, next)
		f.pass(time.Second)
		require.Len(t, next, 1)
		require.ErrorIs(t, <-next, store.ErrFuture)
	}
	require.Empty(t, f.events())
}

// Events leave the window by their age though nothing comes after them.
func TestTrim_GoesOnWhileNothingComes(t *testing.T) {
	f := newFixture(t, Config{Limits: window.Limits{MinAge: time.Minute, ChunkSize: 1}})
	f.list(5)
	f.change(store.Added, object("a", 6))
	for range 2 * trimsPerAge {
		require.LessOrEqual(t, f.clock.Pending(), 1)
		f.pass(time.Minute / trimsPerAge)
	}
	require.Empty(t, f.events())
	require.Zero(t, f.clock.Pending(), "there is nothing left to trim")
}

// Changes that leave the window before anything reads the state are part of it nevertheless.
func TestTrim_KeepsInTheStateWhatLeavesTheWindow(t *testing.T) {
	f := newFixture(t, Config{Limits: window.Limits{MaxEvents: 2, ChunkSize: 1}})
	f.offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 1, State: tree.New().View()})
	for n := range 10 {
		f.change(store.Added, object(fmt.Sprint(n), store.Revision(2+n)))
	}
	require.Len(t, f.events(), 2)
	require.Equal(t, 10, f.snapshot().State().Len())
}

// A watch from now on may have been requested before storage went back. Its revision may never come
// in the new history.
func TestRegister_StartNowOfAnotherEpochIsNow(t *testing.T) {
	f := newFixture(t, Config{})
	f.list(100)
	before := f.snapshot().Epoch
	f.list(7)
	require.NotEqual(t, before, f.snapshot().Epoch)
	feed := &watcher.Feed{Registry: new(watcher.Registry)}
	for _, from := range []watcher.From{{NotBefore: 100, Epoch: before}, {NotBefore: 100, Epoch: before + 1}} {
		f.cache.Register(Register{Watch: watcher.New(feed, watcher.Options{}), From: from, Reply: make(chan error, 1)})
		f.seeded.Run()
	}
	require.Len(t, f.begun, 2)
	require.Equal(t, watcher.Start{Next: f.snapshot().Window.Next(), After: 7}, f.begun[0].Start)
	require.Equal(t, watcher.Start{Pending: 100}, f.begun[1].Start, "an epoch that the cache has not heard of yet")
}

// A watch that starts with the state may have been requested before storage went back: then the state is
// older than its consumer has seen.
func TestRegister_StateIsNotOlderThanItsRevision(t *testing.T) {
	f := newFixture(t, Config{})
	f.list(100)
	f.list(7)
	feed, reply := &watcher.Feed{Registry: new(watcher.Registry)}, make(chan error, 1)
	register := func(from store.Revision) {
		f.cache.Register(Register{Watch: watcher.New(feed, watcher.Options{}), From: watcher.From{Revision: from, State: true}, Reply: reply})
		f.seeded.Run()
	}
	register(100)
	require.Empty(t, f.begun)
	require.Equal(t, &store.FutureError{Requested: 100, Current: 7}, <-reply)
	register(7)
	require.Len(t, f.begun, 1)
}
