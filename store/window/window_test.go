package window_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

var start = time.Unix(0, 0)

// put appends an event for key at the next revision and applies it.
func put(w *window.Window, objects *tree.Tree, key string) *store.Object {
	o := storetest.NewThing(store.Object{Key: key, Revision: w.View().Revision() + 1})
	ev := store.Event{Type: store.Added, Revision: o.Revision, Object: o, Prev: objects.Get(key)}
	if ev.Prev != nil {
		ev.Type = store.Modified
	}
	w.Append(ev, start)
	objects.Put(o)
	return o
}

// remove appends the deletion of key at the next revision and applies it.
func remove(w *window.Window, objects *tree.Tree, key string) {
	rev := w.View().Revision() + 1
	prev := objects.Get(key)
	w.Append(store.Event{Type: store.Deleted, Revision: rev, Object: storetest.Things.Gone(prev, rev, start), Prev: prev}, start)
	objects.Delete(key)
}

// snapshot returns the window and its tree as they are now.
func snapshot(w *window.Window, objects *tree.Tree) *window.Snapshot {
	return &window.Snapshot{Revision: w.View().Revision(), Base: objects.View(), Window: w.View()}
}

func TestWindow_HoldsAppendedEvents(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	w.Reset(5)
	a := put(w, objects, "a")
	remove(w, objects, "a")
	v := w.View()
	events, ok := v.Read(v.First())
	require.True(t, ok)
	require.Equal(t, []string{"ADDED a@6", "DELETED a@7"}, []string{events[0].String(), events[1].String()})
	require.Same(t, a, events[0].Object)
	require.Same(t, a, events[1].Prev)
}

// Relists whose changes stay in the window cost the commits that follow nothing.
func TestTrim_GapsWithEventsBetweenAreLeftAsTheyAre(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	w.Reset(1)
	w.AppendDiff(nil, 1, 10, start)
	put(w, objects, "a")
	w.AppendDiff(nil, 11, 20, start)
	require.Zero(t, testing.AllocsPerRun(10, func() { w.Trim(start) }))
}

// Old gaps stay apart if events lie between them, so a watch can start there.
func TestTrim_OldGapsWithEventsBetweenStayApart(t *testing.T) {
	w, objects := window.New(window.Limits{MinEvents: 10}, nil), tree.New()
	w.Reset(1)
	w.AppendDiff(nil, 1, 10, start)
	put(w, objects, "a")
	w.AppendDiff(nil, 11, 20, start)
	w.Trim(start.Add(time.Hour))
	for rev, ok := range map[store.Revision]bool{1: true, 5: false, 10: true, 11: true, 15: false, 20: true} {
		_, err := w.View().Seek(rev)
		require.Equal(t, ok, err == nil, "from revision %d: %v", rev, err)
	}
}

// A view keeps its gaps, whatever its window does later.
func TestView_KeepsItsGaps(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	w.Reset(1)
	for range 3 {
		w.AppendDiff(nil, w.View().Revision(), w.View().Revision()+9, start)
		put(w, objects, "a")
	}
	before := w.View()
	w.RaiseFloor(11)
	for _, rev := range []store.Revision{5, 15, 25} {
		_, err := before.Seek(rev)
		require.ErrorIs(t, err, store.ErrExpired, "from revision %d", rev)
	}
	_, err := w.View().Seek(10)
	require.ErrorIs(t, err, store.ErrExpired)
	_, err = w.View().Seek(11)
	require.NoError(t, err)
}

// A window that was rewound goes on with other events. Views from before keep theirs.
func TestRewind_LeavesLaterViewsAsTheyAre(t *testing.T) {
	w, objects := window.New(window.Limits{ChunkSize: 2}, nil), tree.New()
	w.Reset(1)
	for range 3 {
		w.AppendDiff(nil, w.View().Revision(), w.View().Revision()+9, start)
		put(w, objects, "a")
	}
	at := w.View()
	relist := func(by store.Revision, key string) []string {
		w.AppendDiff(nil, w.View().Revision(), w.View().Revision()+by, start)
		put(w, objects, key)
		return eventsOf(w.View())
	}
	first := relist(9, "b")
	givenUp := w.View()
	w.Rewind(at)
	require.Equal(t, eventsOf(at), eventsOf(w.View()))
	second := relist(3, "c")
	require.Equal(t, []string{"ADDED a@11", "MODIFIED a@21", "MODIFIED a@31", "ADDED b@41"}, first)
	require.Equal(t, []string{"ADDED a@11", "MODIFIED a@21", "MODIFIED a@31", "ADDED c@35"}, second)
	require.Equal(t, first, eventsOf(givenUp))
	for v, hidden := range map[*window.View]store.Revision{&givenUp: 38, new(w.View()): 33} {
		_, err := v.Seek(hidden)
		require.ErrorIs(t, err, store.ErrExpired, "from revision %d", hidden)
	}
	w.Trim(start.Add(time.Hour))
	require.Zero(t, w.View().Bytes(), "the bytes of what was given up are not counted")
}

// After a rewind, a past state is that of the new events, even if one of the old events was rebuilt before.
func TestRewind_ForgetsTheStatesThatWereRebuilt(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	w.Reset(0)
	put(w, objects, "a")
	at, base := w.View(), objects.View()
	for _, key := range []string{"old", "new"} {
		w.Rewind(at)
		objects = tree.From(base)
		for range 3000 {
			put(w, objects, key)
		}
		state, err := snapshot(w, objects).StateAt(t.Context(), 1000)
		require.NoError(t, err)
		require.Equal(t, "a@1 "+key+"@1000", storetest.KeysAndRevisions(state))
	}
}

// eventsOf returns the events of a view as text.
func eventsOf(v window.View) (texts []string) {
	for at := v.First(); at < v.Next(); {
		events, _ := v.Read(at)
		for _, ev := range events {
			texts = append(texts, ev.String())
		}
		at += window.Seq(len(events))
	}
	return texts
}

// A floor that is raised refuses watches from before it, and leaves the events to those that
// have a position.
func TestRaiseFloor_LeavesTheEvents(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	w.Reset(1)
	put(w, objects, "a")
	put(w, objects, "b")
	w.RaiseFloor(2)
	v := w.View()
	require.Equal(t, [2]any{store.Revision(2), 2}, [2]any{v.Floor(), v.Len()})
	_, err := v.Seek(1)
	require.ErrorIs(t, err, store.ErrExpired)
	at, err := v.Seek(2)
	require.NoError(t, err)
	require.Equal(t, v.First()+1, at)
	w.RaiseFloor(9)
	require.EqualValues(t, 3, w.View().Floor(), "the newest revision")
}

func TestWindow_EmptyStartsAtTheListsRevision(t *testing.T) {
	w := window.New(window.Limits{}, nil)
	for _, floor := range []store.Revision{1, 100, 7} { // storage may have been restored
		w.Reset(floor)
		v := w.View()
		_, err := v.Seek(floor - 1)
		expired := (*store.ExpiredError)(nil)
		require.ErrorAs(t, err, &expired)
		require.Equal(t, store.ExpiredError{Requested: floor - 1, Oldest: floor}, *expired)
		at, err := v.Seek(floor)
		require.NoError(t, err)
		require.Equal(t, v.Next(), at)
	}
}

// Instead of resizing by guesses about the rate, the limits
// say what is kept, and a small window has small chunks.
func TestWindow_StaysWithinItsLimits(t *testing.T) {
	for _, bound := range []int{1, 2, 3, 5, 8, 100, 1000, 1001} {
		for _, startAt := range []int{0, 7} {
			w, objects := window.New(window.Limits{MaxEvents: bound}, nil), tree.New()
			w.Reset(store.Revision(startAt))
			for n := range 3*bound + 7 {
				put(w, objects, fmt.Sprint("k", n%5))
				w.Trim(start)
				v := w.View()
				require.LessOrEqual(t, v.Len(), bound)
				require.GreaterOrEqual(t, v.Len(), min(n+1, bound-bound/4), "bound %d: no more than a chunk goes at once", bound)
			}
		}
	}
}

func TestWindow_DefaultLimitsHoldALargeBurst(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	w.Reset(0)
	for n := range 100_000 {
		put(w, objects, fmt.Sprint("k", n%100))
	}
	require.Zero(t, w.Trim(start.Add(window.DefaultMinAge-1)))
	require.Equal(t, 100_000, w.Trim(start.Add(window.DefaultMinAge)))
}

func TestWindow_TakesABookmarkForProgress(t *testing.T) {
	w := window.New(window.Limits{}, nil)
	w.Append(store.Event{Type: store.Bookmark, Revision: 9}, start)
	require.Equal(t, store.Revision(9), w.View().Revision())
	require.Zero(t, w.View().Len())
}

// The user's estimate may panic. Then the event is not in the window, which is
// otherwise as before.
func TestWindow_SurvivesAPanicInTheEstimate(t *testing.T) {
	broken := false
	w := window.New(window.Limits{ChunkSize: 1}, func(o *store.Object) int {
		if broken {
			panic("bad")
		}
		return 1
	})
	objects := tree.New()
	put(w, objects, "a")
	before := w.View()
	broken = true
	require.PanicsWithValue(t, "bad", func() { put(w, objects, "a") })
	require.Equal(t, before, w.View())
	broken = false
	put(w, objects, "a")
	require.Equal(t, 2, w.View().Len())
}

// A storage's history and the window of the cache over it hold the same objects,
// which count once; the slots of the events are each one's own.
func TestWindow_BytesBesideAnotherWindow(t *testing.T) {
	limits := window.Limits{ChunkSize: 1}
	sizeOf := func(*store.Object) int { return megabyte }
	history, w, objects := window.New(limits, sizeOf), window.New(limits, sizeOf), tree.New()
	history.Reset(0)
	w.Reset(50)
	for n := range 100 {
		o := put(history, objects, "k")
		if n >= 50 && n < 90 {
			w.Append(store.Event{Type: store.Modified, Revision: o.Revision, Object: o, Prev: o}, start)
		}
	}
	mb := func(n int64) int { return int(n / megabyte) }
	require.Equal(t, 99, mb(history.View().Bytes()))
	require.Equal(t, 99, mb(history.View().BytesBeside(window.View{})))
	require.Equal(t, 49+10, mb(history.View().BytesBeside(w.View())), "before, and what the cache is still to read")
	require.Zero(t, mb(w.View().BytesBeside(history.View())))
	held := 40 * (megabyte + int64(unsafe.Sizeof(store.Object{})))
	require.Equal(t, w.View().Bytes()-held, w.View().BytesBeside(history.View()), "all but the slots")
}

// The chunk of a view's last events may get more of them.
func TestWindow_BytesBesideDoNotChangeWithTheWindow(t *testing.T) {
	w, objects := window.New(window.Limits{}, nil), tree.New()
	put(w, objects, "k")
	put(w, objects, "k")
	v := w.View()
	slots := v.BytesBeside(v)
	put(w, objects, "k")
	require.Equal(t, slots, v.BytesBeside(v))
}

// A key counts for an object that has it alone, and not if its successor has the same text in
// memory, too.
func TestWindow_CountsTheKeysThatOnlyItHas(t *testing.T) {
	const length = 1 << 16
	w := window.New(window.Limits{}, func(*store.Object) int { return 0 })
	object := func(key string) *store.Object {
		return storetest.NewThing(store.Object{Key: key, Revision: w.View().Revision() + 1})
	}
	grows := func(typ store.EventType, o, prev *store.Object) int64 {
		before := w.View().Bytes()
		w.Append(store.Event{Type: typ, Revision: o.Revision, Object: o, Prev: prev}, start)
		return (w.View().Bytes() - before) / length
	}
	first := object(strings.Repeat("k", length))
	require.Zero(t, grows(store.Added, first, nil), "the state has it")
	shares := object(first.Key)
	require.Zero(t, grows(store.Modified, shares, first))
	other := object(strings.Clone(first.Key))
	require.EqualValues(t, 1, grows(store.Modified, other, shares))
	require.EqualValues(t, 1, grows(store.Emitted, object(first.Key), nil))
}

// Positions are numbers and views are short-lived: what was dropped is garbage.
func TestWindow_DroppedEventsAreGarbage(t *testing.T) {
	w, objects := window.New(window.Limits{ChunkSize: 2, MaxEvents: 4}, nil), tree.New()
	dropped := weak.Make(put(w, objects, "gone"))
	remove(w, objects, "gone")
	old := w.View()
	for n := range 6 {
		put(w, objects, fmt.Sprint("k", n))
	}
	require.Equal(t, 4, w.Trim(start))
	stalledAt := old.First()

	runtime.GC()
	require.NotNil(t, dropped.Value(), "the old view shows it")
	runtime.KeepAlive(old)
	runtime.GC()
	require.Nil(t, dropped.Value(), "no view has it any more")

	view := w.View()
	_, ok := view.Read(stalledAt)
	require.False(t, ok)
	runtime.KeepAlive(w)
	runtime.KeepAlive(objects)
}
