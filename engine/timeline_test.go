package engine_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// lives are how storage may have come back in place of one that was at revision 4.
var lives = []struct {
	name string
	// before is how many writes it has when the engine first meets it, and then how
	// many follow.
	before, then int
}{
	{"at the same revision", 3, 0},
	{"at a lower revision", 1, 0},
	{"at a lower revision, and then at the same", 1, 2},
	{"at a lower revision, and then at a greater", 1, 5},
	{"at a greater revision", 7, 0},
}

// replaceStorage has other storage under the engine, which notices it after that many
// writes, and makes more of them.
func (f *readFixture) replaceStorage(before, then int) {
	f.t.Helper()
	require.NoError(f.t, f.storage.Replace(f.newMemory()).Close())
	for n := range before + then {
		if n == before {
			f.notice()
		}
		f.put("other", "web", n)
	}
	f.notice()
}

// notice lets time pass in which the engine lists again.
func (f *readFixture) notice() {
	f.within(time.Minute).settle()
	for range 100 {
		f.clock.Advance(100 * time.Millisecond)
		f.settle()
	}
}

// A list says which history its revision is of, and a watch continues that one or none.
func TestTimeline_AWatchContinuesThatOfItsListOrNone(t *testing.T) {
	for _, uncached := range []bool{false, true} {
		for _, life := range lives {
			t.Run(fmt.Sprintf("%s, uncached %v", life.name, uncached), func(t *testing.T) {
				f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = uncached })
				for n := range 3 {
					f.put("a", "web", n)
				}
				f.settle()
				var lists []*engine.List[pod]
				for _, read := range []engine.Read{engine.Latest(), engine.Cached(), engine.NotOlderThan(4), engine.Exactly(4)} {
					l, err := f.List(t.Context(), engine.ListOptions{Read: read})
					require.NoError(t, err)
					require.Equal(t, engine.Revision(4), l.Revision)
					require.True(t, l.Timeline.Known())
					now, err := f.Timeline(t.Context())
					require.NoError(t, err)
					require.Equal(t, now, l.Timeline)
					lists = append(lists, l)
				}
				w, err := f.Watch(t.Context(), engine.WatchOptions{From: lists[0].Revision, Timeline: lists[0].Timeline})
				require.NoError(t, err, "the storage is the same")
				w.Stop()

				f.replaceStorage(life.before, life.then)
				for _, l := range lists {
					_, err := f.Watch(t.Context(), engine.WatchOptions{From: l.Revision, Timeline: l.Timeline})
					require.ErrorIs(t, err, engine.ErrExpired)
					_, err = f.Watch(t.Context(), engine.WatchOptions{From: l.Revision, Timeline: l.Timeline, InitialState: true})
					require.ErrorIs(t, err, engine.ErrExpired)
				}
				now, err := f.Timeline(t.Context())
				require.NoError(t, err)
				require.NotEqual(t, now, lists[0].Timeline)
			})
		}
	}
}

// Without a cache, storage may be replaced between the list of the state and the watch.
func TestWatch_StateAndChangesAreOfOneStorage(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	f.put("a", "web", 1)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.After(func(context.Context, *faulty.Call) {
		f.replaceStorage(7, 0)
	})})
	_, err := f.Watch(t.Context(), engine.WatchOptions{InitialState: true})
	require.ErrorIs(t, err, engine.ErrExpired)
	w, err := f.Watch(t.Context(), engine.WatchOptions{InitialState: true})
	require.NoError(t, err)
	w.Stop()
}

// A consumer whose storage was replaced between its list, or its watch, and the next
// watch is given a list, whatever the revisions are.
func TestFollow_ListsAgainWhenStorageWasReplacedBetweenTwoWatches(t *testing.T) {
	for _, life := range lives {
		for _, from := range []engine.Revision{0, 1} {
			t.Run(fmt.Sprintf("%s, from %d", life.name, from), func(t *testing.T) {
				f := newReadFixture(t)
				for n := range 3 {
					f.put("a", "web", n)
				}
				f.settle()
				follow := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{From: from})
				for up, err := range follow {
					require.NoError(t, err)
					require.Equal(t, engine.Revision(4), up.Revision)
					break
				}
				f.replaceStorage(life.before, life.then)
				for up, err := range follow {
					require.NoError(t, err)
					require.NotNil(t, up.List, "%v", textOf(up))
					require.ErrorIs(t, up.Cause, engine.ErrExpired)
					require.Equal(t, fmt.Sprintf("list@%d: other=%d", life.before+life.then+1, life.before+life.then-1), textOf(engine.Update[pod]{List: up.List, Revision: up.Revision}))
					break
				}
			})
		}
	}
}

// So a checkpoint that is made of an update is never of other storage than the update.
func TestFollow_TellsOfWhichTimelineAnUpdateIs(t *testing.T) {
	for _, uncached := range []bool{false, true} {
		for _, from := range []engine.Revision{0, 1} {
			t.Run(fmt.Sprintf("uncached %v, from %d", uncached, from), func(t *testing.T) {
				f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = uncached })
				f.put("a", "web", 1)
				f.settle()
				before, err := f.Timeline(t.Context())
				require.NoError(t, err)
				follow := engine.Follow(t.Context(), f.Engine, engine.WatchOptions{From: from})
				require.Equal(t, before, f.nextUpdate(follow).Timeline)
				f.put("a", "web", 2)
				require.Equal(t, before, f.nextUpdate(follow).Timeline)
				f.replaceStorage(7, 0)
				list := f.nextUpdate(follow)
				require.Equal(t, list.List.Timeline, list.Timeline)
				require.NotEqual(t, before.Store(), list.Timeline.Store())
				f.put("other", "web", 9)
				require.Equal(t, list.Timeline, f.nextUpdate(follow).Timeline)
			})
		}
	}
}

// nextUpdate ranges over a follower for one update.
func (f *readFixture) nextUpdate(follow iter.Seq2[engine.Update[pod], error]) (next engine.Update[pod]) {
	f.t.Helper()
	for up, err := range follow {
		require.NoError(f.t, err)
		next = up
		break
	}
	return next
}

func TestResume_ListsAgainWhenStorageWasReplacedBeforeTheWatch(t *testing.T) {
	for _, life := range lives {
		t.Run(life.name, func(t *testing.T) {
			f := newReadFixture(t)
			for n := range 3 {
				f.put("a", "web", n)
			}
			f.settle()
			var told []string
			w, err := engine.Resume(t.Context(), f.Engine, engine.WatchOptions{}, func(l *engine.List[pod]) {
				if told = append(told, textOf(engine.Update[pod]{List: l, Revision: l.Revision})); len(told) == 1 {
					f.replaceStorage(life.before, life.then)
				}
			}, nil)
			require.NoError(t, err)
			w.Stop()
			last := life.before + life.then
			require.Equal(t, []string{"list@4: a=2", fmt.Sprintf("list@%d: other=%d", last+1, last-1)}, told)
		})
	}
}

// The revision that storage had at the call means nothing in the history that it was restored
// to meanwhile.
func TestWatch_FromNowOfStorageThatIsRestoredMeanwhileMissesNothing(t *testing.T) {
	for _, linearizable := range []bool{false, true} {
		t.Run(fmt.Sprint("linearizable=", linearizable), func(t *testing.T) {
			f := newReadFixture(t, func(c *engine.Config[pod]) { c.Backoff.Initial = 10 * time.Millisecond })
			f.setHeld(true)
			for n := range 3 {
				f.put("a", "web", n)
			}
			f.clock.AfterFunc(time.Second, func() {
				f.goBack()
				f.setHeld(false)
				f.storage.BreakWatches(nil)
			})
			w, err := f.within(time.Minute).Watch(t.Context(), engine.WatchOptions{Linearizable: linearizable})
			require.NoError(t, err)
			require.Equal(t, engine.Revision(1), f.Revision(), "the cache has listed the restored storage")
			last := f.put("b", "web", 1)
			require.Equal(t, []string{"ADDED b@2"}, until(t, t.Context(), w, last))
		})
	}
}

// A watch that must see what was acknowledged does not begin with what storage had before, as others do
// until the cache has noticed that storage went back. Those then end.
func TestWatch_LinearizableIsOfStorageThatHasGoneBackOrFails(t *testing.T) {
	f := newReadFixture(t)
	for n := range 3 {
		f.put("a", "web", n)
	}
	f.goBack()
	last := f.put("b", "web", 7)
	for _, opts := range []engine.WatchOptions{{}, {InitialState: true}, {From: last}, {Last: 1}} {
		opts.Linearizable = true
		_, err := f.Watch(t.Context(), opts)
		require.ErrorIs(t, err, engine.ErrNotReady)
		require.ErrorContains(t, err, "storage was replaced")
	}
	old, err := f.Watch(t.Context(), engine.WatchOptions{InitialState: true})
	require.NoError(t, err)
	f.storage.BreakWatches(nil)
	f.notice()
	require.ErrorIs(t, old.Err(), engine.ErrExpired)
	w, err := f.Watch(t.Context(), engine.WatchOptions{InitialState: true, Linearizable: true})
	require.NoError(t, err)
	require.Equal(t, []string{"ADDED b@2 initial"}, until(t, t.Context(), w, last))
}

func TestTimeline_IsRefusedWithoutARevision(t *testing.T) {
	f := newReadFixture(t)
	now, err := f.Timeline(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, now.Store())
	require.Contains(t, now.String(), now.Store())
	require.Equal(t, "unknown", engine.Timeline{}.String())
	_, err = f.Watch(t.Context(), engine.WatchOptions{Timeline: now})
	require.ErrorIs(t, err, engine.ErrInvalidWatch)
	require.ErrorContains(t, err, "Timeline")
	require.NoError(t, f.Close())
	_, err = f.Timeline(context.Background())
	require.ErrorIs(t, err, engine.ErrEngineClosed)
}

// A list and the watch that continues it, of one storage or not at all.
func ExampleTimeline() {
	ctx := context.Background()
	pods, _ := engine.New(engine.Config[Pod]{Key: func(p Pod) string { return p.Name }})
	defer pods.Close()
	_, _ = pods.Create(ctx, Pod{Name: "web"})

	list, _ := pods.List(ctx, engine.ListOptions{})
	_, err := pods.Watch(ctx, engine.WatchOptions{From: list.Revision, Timeline: list.Timeline})
	fmt.Println(err)
	now, _ := pods.Timeline(ctx)
	fmt.Println(list.Timeline == now)
	// Output:
	// <nil>
	// true
}
