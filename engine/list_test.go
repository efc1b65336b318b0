package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

func listOf(read engine.Read) engine.ListOptions { return engine.ListOptions{Read: read} }

func TestRow019_ListsAreAsFreshAsAsked(t *testing.T) {
	r := newReadRig(t)
	first := r.put("a", "web", 1)
	r.source.setHeld(true)
	second := r.put("a", "web", 2)
	r.lists(listOf(engine.Cached()), "@2: a=1@2", "nothing")
	r.lists(listOf(engine.NotOlderThan(first)), "@2: a=1@2", "nothing")
	r.clock.AfterFunc(time.Second, func() { r.source.setHeld(false) })
	r.within(time.Minute).lists(listOf(engine.Latest()), fmt.Sprintf("@%d: a=2@3", second), "revision")
	r.lists(listOf(engine.Cached()), "@3: a=2@3", "nothing")
}

func TestRow020_ListOfOneKey(t *testing.T) {
	r := newReadRig(t)
	r.put("a", "web", 1)
	r.put("ab", "web", 1)
	r.lists(engine.ListOptions{Key: "a"}, "@3: a=1@2", "revision")
	r.lists(engine.ListOptions{Key: "none"}, "@3:", "revision")
	r.lists(engine.ListOptions{Key: "a", Labels: "app=db"}, "@3:", "revision")
	_, _, err := r.within(time.Minute).list(engine.ListOptions{Key: "a", Read: engine.NotOlderThan(99)})
	require.ErrorIs(t, err, engine.ErrFuture)
}

func TestRow025_PageOfARareObjectHasNoTokenBehindTheLast(t *testing.T) {
	r := newReadRig(t)
	for i := range 50 {
		r.put(fmt.Sprintf("p%02d", i), "web", i)
	}
	r.put("q", "rare", 1)
	r.lists(engine.ListOptions{Labels: "app=rare", Limit: 1}, "@52: q=1@52", "revision")
}

func TestRow026_ContinuationWithASelectorDoesNotCountTheRest(t *testing.T) {
	r := newReadRig(t)
	for i, app := range []string{"web", "db", "web", "web"} {
		r.put(string(rune('a'+i)), app, i)
	}
	token := r.lists(engine.ListOptions{Labels: "app=web", Limit: 2}, "@5: a=0@2 c=2@4 -1 more", "revision")
	r.put("c", "web", 9) // not seen: the list is of one state
	r.lists(engine.ListOptions{Labels: "app=web", Limit: 2, Continue: token}, "@5: d=3@5", "nothing")
}

func TestRow028_ExactListsArePastStates(t *testing.T) {
	r := newReadRig(t)
	r.put("a", "web", 1)
	r.put("b", "web", 1)
	r.put("a", "web", 2)
	r.remove("b")
	for rev, want := range map[engine.Revision]string{2: "a=1@2", 3: "a=1@2 b=1@3", 4: "a=2@4 b=1@3", 5: "a=2@4"} {
		r.lists(listOf(engine.Exactly(rev)), fmt.Sprintf("@%d: %s", rev, want), "nothing")
	}
	token := r.lists(engine.ListOptions{Read: engine.Exactly(3), Limit: 1}, "@3: a=1@2 +1 more", "nothing")
	r.lists(engine.ListOptions{Limit: 1, Continue: token}, "@3: b=1@3", "nothing")
}

func TestRow062_LatestFallsBackToTheBackendWhenTheCacheIsLate(t *testing.T) {
	r := newReadRig(t)
	r.source.setHeld(true)
	r.put("a", "web", 1)
	r.within(time.Minute).lists(listOf(engine.Latest()), "@2: a=1@2", "revision, list")
	require.EqualValues(t, 1, r.Stats().Fallbacks)
}

func TestRow063_ExactListsBeyondTheWindowAreTheBackends(t *testing.T) {
	r := newReadRig(t)
	r.put("a", "web", 1)
	r.put("a", "web", 2)
	r.pass(80 * time.Second) // the window forgets, storage does not
	r.put("a", "web", 3)
	r.lists(listOf(engine.Exactly(2)), "@2: a=1@2", "list")
	require.NoError(t, r.source.Compact(t.Context(), 4))
	_, _, err := r.list(listOf(engine.Exactly(2)))
	require.ErrorIs(t, err, engine.ErrExpired)
}

func TestRow067_ListsAreCounted(t *testing.T) {
	r := newReadRig(t)
	r.put("a", "web", 1)
	r.lists(listOf(engine.Cached()), "@2: a=1@2", "nothing")
	r.lists(listOf(engine.Latest()), "@2: a=1@2", "revision")
	require.EqualValues(t, 2, r.Stats().Lists)
	require.Zero(t, r.Stats().Fallbacks)
}

func TestRow069_WatchDoesNotHangWhenStorageNeverAnswers(t *testing.T) {
	r := newUnready(t, func(c *engine.Config[pod]) { c.Backend.(*source).setDown(true) })
	_, err := r.within(time.Minute).Watch(t.Context(), engine.WatchOptions{})
	var notReady *engine.NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.ErrorIs(t, err, errDown)
	require.Contains(t, err.Error(), "storage is (re)initializing")
	require.Positive(t, notReady.RetryAfter)
}

func TestRow089_LimitIsIgnoredForCachedLists(t *testing.T) {
	r := newReadRig(t)
	r.put("a", "web", 1)
	r.put("b", "web", 1)
	r.lists(engine.ListOptions{Read: engine.Cached(), Limit: 1}, "@3: a=1@2 b=1@3", "nothing")
	r.lists(engine.ListOptions{Limit: 1}, "@3: a=1@2 +1 more", "revision")
}

func TestRow090_IndexGivesTheSameListInOrder(t *testing.T) {
	r := newReadRig(t)
	for i, app := range []string{"db", "web", "db", "web"} {
		r.put(string(rune('d'-i)), app, i)
	}
	r.lists(engine.ListOptions{Labels: "app=web"}, "@5: a=3@5 c=1@3", "revision")
	objects, err := r.ByIndex(t.Context(), "app", "web")
	require.NoError(t, err)
	require.Len(t, objects, 2)
	require.Equal(t, "a", objects[0].Key)
	_, err = r.ByIndex(t.Context(), "color", "red")
	require.ErrorIs(t, err, engine.ErrUnknownIndex)
	require.ErrorContains(t, err, `"color"`)
}

// What the verifier of row 127 finds, it reports, and has mended.
func TestRow127_VerifyFindsACacheThatDiffersAndHasItListedAnew(t *testing.T) {
	r := newReadRig(t)
	r.put("a", "web", 1)
	require.NoError(t, r.Verify(t.Context()))
	w, err := r.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)

	r.source.set(func() {
		r.source.lie = func(ev store.Event) store.Event {
			wrong := *ev.Object
			wrong.Created++ // not what storage has
			ev.Object = &wrong
			return ev
		}
	})
	r.put("b", "web", 1)
	r.source.set(func() { r.source.lie = nil })

	err = r.Verify(t.Context())
	var differs *engine.InconsistencyError
	require.ErrorAs(t, err, &differs)
	require.Equal(t, "b", differs.Key)
	require.EqualValues(t, 3, differs.Revision)
	r.pass(5 * time.Second)
	require.NoError(t, r.Verify(t.Context()))
	// Nothing has been written since, so no revision is left for the correction
	// to come at: the watch is told that it has to start over.
	require.ErrorIs(t, w.Err(), engine.ErrExpired)
}

func TestRow127_VerifyEveryComparesFromTimeToTime(t *testing.T) {
	r := newReadRig(t, func(c *engine.Config[pod]) { c.VerifyEvery = time.Minute })
	r.source.set(func() {
		r.source.lie = func(ev store.Event) store.Event {
			wrong := *ev.Object
			wrong.Created++
			ev.Object = &wrong
			return ev
		}
	})
	r.put("a", "web", 1)
	r.source.set(func() { r.source.lie = nil })
	r.pass(2 * time.Minute)
	found := false
	for _, err := range r.errs {
		found = found || errors.Is(err, engine.ErrInconsistent)
	}
	require.True(t, found, "it is reported: %v", r.errs)
	require.NoError(t, r.Verify(t.Context()))
}
