package watcher_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// oneRevision writes n new objects at one revision.
func (w *world) oneRevision(n int) {
	for i := range n {
		line := fmt.Sprintf("create k%03d a=%d", w.history.revision*1000+store.Revision(i), i%2)
		if i > 0 {
			line = "with " + line
		}
		w.write(line)
	}
}

// wide is a world whose window holds everything.
func wide(t *testing.T, labels string) *world {
	return newWorld(t, filter(store.FilterOptions{Labels: labels}), window.Limits{MaxEvents: 10_000})
}

// A revision that goes on behind a chunk of the window, as storage with
// transactions makes them, is resumed from only when all of it was delivered.
func TestWatch_RevisionMovesOnBehindItsLastEvent(t *testing.T) {
	for name, labels := range map[string]string{"everything": "", "filtered": "a=1"} {
		t.Run(name, func(t *testing.T) {
			w := wide(t, labels)
			watch := w.watch(watcher.Options{}, w.now())
			w.oneRevision(1)
			w.oneRevision(300)
			w.round()
			want := len(watcher.ConvertBatch(schema, w.stream.Filter(), w.log))
			for range want {
				require.Less(t, watch.Revision(), store.Revision(2))
				for _, err := range watch.Events() {
					require.NoError(t, err)
					break
				}
			}
			require.Equal(t, store.Revision(2), watch.Revision())
		})
	}
}

func TestWatch_NextHandsOutWholeRevisions(t *testing.T) {
	w := wide(t, "")
	watch := w.watch(watcher.Options{}, w.now())
	for range 10 {
		w.oneRevision(100) // a chunk ends within some
	}
	w.round()
	for last := store.Revision(0); last < 10; last = watch.Revision() {
		events, err := watch.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, last+1, events[0].Revision)
		require.Zero(t, len(events)%100, "it has all of its revisions")
		require.Equal(t, events[len(events)-1].Revision, watch.Revision())
	}
}

// A consumer may keep a batch while it reads the next.
func TestWatch_BatchesOfAnInitialStateStayAsTheyAre(t *testing.T) {
	w := wide(t, "")
	w.oneRevision(1000)
	w.round()
	start := w.now()
	start.State = w.feed.Load().State()
	pulled, notified := w.watch(watcher.Options{}, start), watcher.NewNotified(&w.feed, watcher.Options{}, func() {})
	w.join(notified, start)
	for name, next := range map[string]func() ([]store.Event, error){
		"pulled": func() ([]store.Event, error) { return pulled.Next(t.Context()) },
		"notified": func() ([]store.Event, error) {
			events, _, err := notified.Take(1000)
			return events, err
		},
	} {
		first, err := next()
		require.NoError(t, err)
		was := slices.Clone(first)
		second, err := next()
		require.NoError(t, err)
		require.NotEmpty(t, second)
		require.Equal(t, was, first, name)
	}
}

func TestWatch_TakeNeverSplitsARevision(t *testing.T) {
	w := wide(t, "")
	watch := watcher.NewNotified(&w.feed, watcher.Options{}, func() {})
	w.join(watch, w.now())
	for _, n := range []int{1, 2, 300, 1} {
		w.oneRevision(n)
	}
	w.round()
	for _, want := range []struct {
		events  int
		through store.Revision
	}{{1, 1}, {2, 2}, {300, 3}, {1, 4}, {0, 4}} {
		events, through, err := watch.Take(2)
		require.NoError(t, err)
		require.Len(t, events, want.events)
		require.Equal(t, want.through, through)
	}
}

// What comes between the read that found nothing and the moment in which the
// watch waits, is found by the second read: nothing would signal it.
func TestWatch_ReadsOnceMoreBeforeItWaits(t *testing.T) {
	w := wide(t, "")
	watch := w.watch(watcher.Options{Buffer: 1}, w.now())
	w.rounds(2, "emit x")
	require.True(t, watch.Member().SetStalled(w.feed.Load().Window.Next(), time.Time{}))
	_, err := watch.Next(t.Context())
	require.NoError(t, err)
	w.feed.Recovered = func(m *watcher.Member) {
		w.feed.Recovered = nil
		w.write("create y")
		w.feed.Publish(w.written)
		require.False(t, m.ClearWaiting(), "the dispatcher sees no reason to signal")
	}
	events, err := watch.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, events, 1)
}

// A watch that catches up while the dispatcher calls it stalled is not stalled: it would
// stay so for as long as nothing new comes, and without a cache nothing does.
func TestWatch_ThatHasCaughtUpIsNotCalledStalled(t *testing.T) {
	w := wide(t, "")
	watch := w.watch(watcher.Options{Buffer: 1}, w.now())
	w.rounds(3, "emit x")
	end := w.feed.Load().Window.Next()
	require.True(t, watch.Member().ExceedsBuffer(end), "the dispatcher has seen it lag")
	_, err := watch.Next(t.Context())
	require.NoError(t, err)
	_, err = watch.Next(t.Context())
	require.ErrorIs(t, err, errIdle)
	require.False(t, watch.Member().SetStalled(end, time.Time{}))
	require.False(t, watch.Member().Stalled())
}

// A stream that is restarted still counts what was in it: a watch that does not read would
// otherwise pass for one that has caught up.
func TestWatch_ThatLagsDoesSoAfterItsStreamIsRestarted(t *testing.T) {
	w := wide(t, "a=1")
	watch := w.watch(watcher.Options{Buffer: 1}, w.now())
	w.rounds(2, "emit x a=1")
	w.write("emit x a=1")
	w.halfRound()
	w.round()
	require.True(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
	for err := error(nil); err == nil; _, err = watch.Next(t.Context()) {
	}
	require.NoError(t, watch.Err())
	require.False(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()), "it has read all")
	w.rounds(2, "emit x a=1")
	require.True(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
}

// What the dispatcher has found in a round that is not over is ahead of a watch that catches up
// meanwhile. All that came before is not: the watch would pass for one that lags by that, too.
func TestWatch_ThatCatchesUpInARoundLagsByThatRoundAlone(t *testing.T) {
	w := wide(t, "a=1")
	watch := w.watch(watcher.Options{Buffer: 1}, w.now())
	w.rounds(5, "emit x a=1")
	require.True(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
	w.write("emit x a=1")
	w.roundDuring(func() {
		for err := error(nil); err == nil; _, err = watch.Next(t.Context()) {
		}
	})
	require.EqualValues(t, 5, watch.Delivered())
	require.False(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
	w.rounds(1, "emit x a=1")
	require.True(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
}

// A watch that resumes from before its stream may have kept more than the stream has.
func TestWatch_LagsByWhatItHasKeptFromBeforeItsStream(t *testing.T) {
	w := newWorld(t, filter(store.FilterOptions{Labels: "a=1"}), window.Limits{MaxEvents: 4, ChunkSize: 1})
	w.rounds(3, "emit x a=1")
	w.stream = watcher.NewStream(schema, w.stream.Filter(), w.feed.Load().Window.Next())
	watch := w.watch(watcher.Options{Buffer: 3}, watcher.Start{})
	w.rounds(1, "emit x a=2")
	for range 4 {
		w.write("emit x a=2")
	}
	w.trim()
	w.round() // the three leave the window
	_, err := watch.Next(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, watch.Lag())
	w.rounds(1, "emit x a=1")
	require.EqualValues(t, 3, watch.Lag())
	require.False(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
	w.rounds(1, "emit x a=1")
	require.EqualValues(t, 4, watch.Lag())
	require.True(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
}

func TestWatch_BreakingOutOfALoopLosesNothing(t *testing.T) {
	w := wide(t, "")
	watch := w.watch(watcher.Options{}, w.now())
	for range 5 {
		w.oneRevision(1)
	}
	w.round()
	var seen []store.Revision
	take := func(n int, leave func()) {
		defer func() { _ = recover() }()
		for ev, err := range watch.Events() {
			require.NoError(t, err)
			seen = append(seen, ev.Revision)
			if n--; n == 0 {
				leave()
				break
			}
		}
	}
	take(2, func() {})
	require.Equal(t, uint64(3), watch.Lag())
	require.Equal(t, uint64(5), watch.Delivered(), "all of the batch")
	take(1, func() { panic("the loop's body") })
	take(2, func() {})
	require.Equal(t, []store.Revision{1, 2, 3, 4, 5}, seen)
	require.Zero(t, watch.Lag())
	require.Equal(t, uint64(5), watch.Delivered())
}

// What the body of a loop would read comes after what the loop has taken: it would come out of order and,
// if both loops are left, replace what is kept for the next one.
func TestWatch_IsNotReadInTheBodyOfALoop(t *testing.T) {
	w := wide(t, "")
	watch := w.watch(watcher.Options{}, w.now())
	write := func(n int) {
		for range n {
			w.oneRevision(1)
		}
		w.round()
	}
	write(3)
	var seen []store.Revision
	for ev, err := range watch.Events() {
		require.NoError(t, err)
		seen = append(seen, ev.Revision)
		write(3)
		var refused []error
		for _, err := range watch.Events() {
			refused = append(refused, err)
		}
		for _, err := range watch.Batches() {
			refused = append(refused, err)
		}
		_, err = watch.Next(t.Context())
		require.Equal(t, []error{watcher.ErrConsumerConflict, watcher.ErrConsumerConflict, watcher.ErrConsumerConflict}, append(refused, err))
		break
	}
	var end error
	for ev, err := range watch.Events() {
		if end = err; err == nil {
			seen = append(seen, ev.Revision)
		}
	}
	require.ErrorIs(t, end, errIdle)
	require.Equal(t, []store.Revision{1, 2, 3, 4, 5, 6}, seen)
	events, err := watch.Next(t.Context())
	require.Empty(t, events)
	require.ErrorIs(t, err, errIdle)
}

// The revision advances with each event that is received, and not by whole batches.
func TestWatch_RevisionFollowsWhatAChannelDelivers(t *testing.T) {
	w := wide(t, "")
	w.feed.Go = func(f func()) { f() }
	watch := w.watch(watcher.Options{}, w.now())
	for range 3 {
		w.oneRevision(1)
	}
	w.round()
	var before []store.Revision
	watch.Pump(func(ev store.Event) bool {
		before = append(before, watch.Revision())
		return ev.Revision < 3
	}, func() {})
	require.Equal(t, []store.Revision{0, 1, 2}, before)
	require.EqualValues(t, 2, watch.Revision(), "the last was not received")
}

// lagging returns a watch over a window of four events. It has caught up.
func lagging(t *testing.T, labels string, o watcher.Options) (*world, *watcher.Watch) {
	w := newWorld(t, filter(store.FilterOptions{Labels: labels}), window.Limits{MaxEvents: 4, ChunkSize: 1})
	watch := w.watch(o, w.now())
	_, err := watch.Next(t.Context())
	require.ErrorIs(t, err, errIdle)
	return w, watch
}

// rounds writes n revisions, each with a round of its own.
func (w *world) rounds(n int, line string) {
	for range n {
		w.write(line)
		w.trim()
		w.round()
	}
}

func TestWatch_OverrunGoesOnIfWhatLeavesFitsIntoItsBuffer(t *testing.T) {
	for _, labels := range []string{"", "a=1"} {
		w, watch := lagging(t, labels, watcher.Options{Buffer: 5})
		w.rounds(9, "emit x a=1") // five have left, four are in the window
		require.Equal(t, uint64(9), watch.Lag())
		require.True(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
		for n := range 9 {
			_, err := watch.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, uint64(8-n), watch.Lag())
			require.Equal(t, 8-n > 5, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()), "after %d", n+1)
		}
		_, err := watch.Next(t.Context())
		require.ErrorIs(t, err, errIdle)

		w.rounds(10, "emit x a=1")
		for n := range 5 {
			events, err := watch.Next(t.Context())
			require.NoError(t, err, n)
			require.Len(t, events, 1)
		}
		_, err = watch.Next(t.Context())
		require.ErrorIs(t, err, watcher.ErrExpired, "the sixth that left did not fit")
	}
}

// What is not for a watch that follows its stream leaves the window unseen, and
// its buffer is for what is.
func TestWatch_OverrunByWhatIsNotForIt(t *testing.T) {
	w, watch := lagging(t, "a=1", watcher.Options{Buffer: 1})
	w.rounds(10, "emit x a=2")
	w.rounds(2, "emit x a=1")
	w.rounds(2, "emit x a=2") // both are still in the window
	for range 2 {
		_, err := watch.Next(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, watch.Err())
}

func TestWatch_PendingNeitherReadsNorLags(t *testing.T) {
	for _, labels := range []string{"", "a=1"} {
		w := newWorld(t, filter(store.FilterOptions{Labels: labels}), window.Limits{MaxEvents: 4, ChunkSize: 1})
		watch := w.watch(watcher.Options{Buffer: 1}, watcher.Start{Pending: 20})
		w.rounds(19, "emit x a=1")
		require.False(t, watch.Member().ExceedsBuffer(w.feed.Load().Window.Next()))
		require.False(t, watch.Member().Unread())
		require.Zero(t, watch.Lag())
		require.Equal(t, store.Revision(20), watch.Revision())
		w.rounds(2, "emit x a=1")
		require.Equal(t, uint64(1), watch.Lag())
		require.True(t, watch.Member().Unread())
		events, err := watch.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, "EMITTED x@21", events[0].String())
	}
}

// What is kept is shared: with the window and with all that lag as far.
func TestWatch_KeepingCostsNoCopies(t *testing.T) {
	const watches, rounds = 50, 400
	w := newWorld(t, nil, window.Limits{MaxEvents: 64, ChunkSize: 16})
	for range watches {
		w.watch(watcher.Options{Buffer: 1_000_000}, w.now())
	}
	var snaps []*window.Snapshot
	for range rounds {
		for range 16 {
			w.write("emit x")
		}
		w.trim()
		snaps = append(snaps, w.written)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, snap := range snaps {
		w.written = snap
		w.round()
	}
	runtime.ReadMemStats(&after)
	perChunk := (after.TotalAlloc - before.TotalAlloc) / (watches * rounds)
	require.Less(t, perChunk, uint64(16*40/4), "bytes for a chunk of 16 events of 40")
	for _, m := range w.stream.Members() {
		require.Equal(t, uint64(rounds*16), (*watcher.Watch)(m).Lag())
	}
}

func TestNotified_IsCalledOnceForEachTimeThatItFoundNothing(t *testing.T) {
	w := wide(t, "")
	told := 0
	watch := watcher.NewNotified(&w.feed, watcher.Options{}, func() { told++ })
	rouse := func() {
		if watch.Member().ClearWaiting() {
			watch.Member().Signal()
		}
	}
	events, through, err := watch.Take(1)
	require.NoError(t, err)
	require.Empty(t, events)
	require.Zero(t, through, "it has not begun")
	w.join(watch, w.now())
	w.write("create x")
	w.round()
	rouse()
	rouse()
	require.Equal(t, 1, told)
	events, _, err = watch.Take(1)
	require.NoError(t, err)
	require.Len(t, events, 1)
	rouse()
	require.Equal(t, 1, told, "it has not come back for more")
	_, _, err = watch.Take(1)
	require.NoError(t, err)
	watch.Stop()
	require.Equal(t, 2, told, "of the end")
	_, _, err = watch.Take(1)
	require.ErrorIs(t, err, watcher.ErrStopped)
}

func TestWatch_HasOneConsumer(t *testing.T) {
	w := wide(t, "")
	notified := watcher.NewNotified(&w.feed, watcher.Options{}, func() {})
	_, err := notified.Next(t.Context())
	require.ErrorIs(t, err, watcher.ErrConsumerConflict)
	pulled := w.watch(watcher.Options{}, w.now())
	_, err = pulled.Next(t.Context())
	require.ErrorIs(t, err, errIdle)
	_, _, err = pulled.Take(1)
	require.ErrorIs(t, err, watcher.ErrConsumerConflict)
	pumped := w.watch(watcher.Options{}, w.now())
	w.feed.Go = func(f func()) { f() }
	pumped.Pump(func(store.Event) bool { return false }, func() {})
	for _, err := range pumped.Events() {
		require.ErrorIs(t, err, watcher.ErrConsumerConflict)
	}
}
