package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

func listOf(read engine.Read) engine.ListOptions { return engine.ListOptions{Read: read} }

func TestList_IsAsFreshAsAsked(t *testing.T) {
	f := newReadFixture(t)
	first := f.put("a", "web", 1)
	f.setHeld(true)
	second := f.put("a", "web", 2)
	f.lists(listOf(engine.Cached()), "@2: a=1@2", "nothing")
	f.lists(listOf(engine.NotOlderThan(first)), "@2: a=1@2", "nothing")
	f.clock.AfterFunc(time.Second, func() { f.setHeld(false) })
	f.within(time.Minute).lists(listOf(engine.Latest()), fmt.Sprintf("@%d: a=2@3", second), "revision")
	f.lists(listOf(engine.Cached()), "@3: a=2@3", "nothing")
}

func TestList_OneKey(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("ab", "web", 1)
	f.lists(engine.ListOptions{Key: "a"}, "@3: a=1@2", "revision")
	f.lists(engine.ListOptions{Key: "none"}, "@3:", "revision")
	f.lists(engine.ListOptions{Key: "a", Labels: "app=db"}, "@3:", "revision")
	_, _, err := f.within(time.Minute).list(engine.ListOptions{Key: "a", Read: engine.NotOlderThan(99)})
	require.ErrorIs(t, err, engine.ErrFuture)
}

func TestList_PageOfARareObjectHasNoToken(t *testing.T) {
	f := newReadFixture(t)
	for i := range 50 {
		f.put(fmt.Sprintf("p%02d", i), "web", i)
	}
	f.put("q", "rare", 1)
	f.lists(engine.ListOptions{Labels: "app=rare", Limit: 1}, "@52: q=1@52", "revision")
}

func TestList_ContinuationWithASelectorDoesNotCountTheRest(t *testing.T) {
	f := newReadFixture(t)
	for i, app := range []string{"web", "db", "web", "web"} {
		f.put(string(rune('a'+i)), app, i)
	}
	token := f.lists(engine.ListOptions{Labels: "app=web", Limit: 2}, "@5: a=0@2 c=2@4 -1 more", "revision")
	f.put("c", "web", 9) // not seen: the list is of one state
	f.lists(engine.ListOptions{Labels: "app=web", Limit: 2, Continue: token}, "@5: d=3@5", "nothing")
}

func TestList_ExactOnesArePastStates(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("b", "web", 1)
	f.put("a", "web", 2)
	f.remove("b")
	for rev, want := range map[engine.Revision]string{2: "a=1@2", 3: "a=1@2 b=1@3", 4: "a=2@4 b=1@3", 5: "a=2@4"} {
		f.lists(listOf(engine.Exactly(rev)), fmt.Sprintf("@%d: %s", rev, want), "nothing")
	}
	token := f.lists(engine.ListOptions{Read: engine.Exactly(3), Limit: 1}, "@3: a=1@2 +1 more", "nothing")
	f.lists(engine.ListOptions{Limit: 1, Continue: token}, "@3: b=1@3", "nothing")
}

func TestList_LatestFallsBackToTheBackendWhenTheCacheIsLate(t *testing.T) {
	f := newReadFixture(t)
	f.setHeld(true)
	f.put("a", "web", 1)
	f.within(time.Minute).lists(listOf(engine.Latest()), "@2: a=1@2", "revision, list")
	require.EqualValues(t, 1, f.Stats().Fallbacks)
}

func TestList_ExactOnesBeyondTheWindowAreTheBackends(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("a", "web", 2)
	f.pass(80 * time.Second) // the window forgets, storage does not
	f.put("a", "web", 3)
	f.lists(listOf(engine.Exactly(2)), "@2: a=1@2", "list")
	require.NoError(t, f.storage.Compact(t.Context(), 4))
	_, _, err := f.list(listOf(engine.Exactly(2)))
	require.ErrorIs(t, err, engine.ErrExpired)
}

func TestStats_Lists(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.lists(listOf(engine.Cached()), "@2: a=1@2", "nothing")
	f.lists(listOf(engine.Latest()), "@2: a=1@2", "revision")
	require.EqualValues(t, 2, f.Stats().Lists)
	require.Zero(t, f.Stats().Fallbacks)
}

func TestList_CachedIgnoresLimit(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("b", "web", 1)
	f.lists(engine.ListOptions{Read: engine.Cached(), Limit: 1}, "@3: a=1@2 b=1@3", "nothing")
	f.lists(engine.ListOptions{Limit: 1}, "@3: a=1@2 +1 more", "revision")
}

func TestList_IndexGivesTheSameInOrder(t *testing.T) {
	f := newReadFixture(t)
	for i, app := range []string{"db", "web", "db", "web"} {
		f.put(string(rune('d'-i)), app, i)
	}
	f.lists(engine.ListOptions{Labels: "app=web"}, "@5: a=3@5 c=1@3", "revision")
	objects, err := f.ByIndex(t.Context(), "app", "web")
	require.NoError(t, err)
	require.Len(t, objects, 2)
	require.Equal(t, "a", objects[0].Key)
	_, err = f.ByIndex(t.Context(), "color", "red")
	require.ErrorIs(t, err, engine.ErrUnknownIndex)
	require.ErrorContains(t, err, `"color"`)
}
