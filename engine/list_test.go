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
	r := newReadFixture(t)
	first := r.put("a", "web", 1)
	r.setHeld(true)
	second := r.put("a", "web", 2)
	r.lists(listOf(engine.Cached()), "@2: a=1@2", "nothing")
	r.lists(listOf(engine.NotOlderThan(first)), "@2: a=1@2", "nothing")
	r.clock.AfterFunc(time.Second, func() { r.setHeld(false) })
	r.within(time.Minute).lists(listOf(engine.Latest()), fmt.Sprintf("@%d: a=2@3", second), "revision")
	r.lists(listOf(engine.Cached()), "@3: a=2@3", "nothing")
}

func TestList_OneKey(t *testing.T) {
	r := newReadFixture(t)
	r.put("a", "web", 1)
	r.put("ab", "web", 1)
	r.lists(engine.ListOptions{Key: "a"}, "@3: a=1@2", "revision")
	r.lists(engine.ListOptions{Key: "none"}, "@3:", "revision")
	r.lists(engine.ListOptions{Key: "a", Labels: "app=db"}, "@3:", "revision")
	_, _, err := r.within(time.Minute).list(engine.ListOptions{Key: "a", Read: engine.NotOlderThan(99)})
	require.ErrorIs(t, err, engine.ErrFuture)
}

func TestList_PageOfARareObjectHasNoToken(t *testing.T) {
	r := newReadFixture(t)
	for i := range 50 {
		r.put(fmt.Sprintf("p%02d", i), "web", i)
	}
	r.put("q", "rare", 1)
	r.lists(engine.ListOptions{Labels: "app=rare", Limit: 1}, "@52: q=1@52", "revision")
}

func TestList_ContinuationWithASelectorDoesNotCountTheRest(t *testing.T) {
	r := newReadFixture(t)
	for i, app := range []string{"web", "db", "web", "web"} {
		r.put(string(rune('a'+i)), app, i)
	}
	token := r.lists(engine.ListOptions{Labels: "app=web", Limit: 2}, "@5: a=0@2 c=2@4 -1 more", "revision")
	r.put("c", "web", 9) // not seen: the list is of one state
	r.lists(engine.ListOptions{Labels: "app=web", Limit: 2, Continue: token}, "@5: d=3@5", "nothing")
}

func TestList_ExactOnesArePastStates(t *testing.T) {
	r := newReadFixture(t)
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

func TestList_LatestFallsBackToTheBackendWhenTheCacheIsLate(t *testing.T) {
	r := newReadFixture(t)
	r.setHeld(true)
	r.put("a", "web", 1)
	r.within(time.Minute).lists(listOf(engine.Latest()), "@2: a=1@2", "revision, list")
	require.EqualValues(t, 1, r.Stats().Fallbacks)
}

func TestList_ExactOnesBeyondTheWindowAreTheBackends(t *testing.T) {
	r := newReadFixture(t)
	r.put("a", "web", 1)
	r.put("a", "web", 2)
	r.pass(80 * time.Second) // the window forgets, storage does not
	r.put("a", "web", 3)
	r.lists(listOf(engine.Exactly(2)), "@2: a=1@2", "list")
	require.NoError(t, r.storage.Compact(t.Context(), 4))
	_, _, err := r.list(listOf(engine.Exactly(2)))
	require.ErrorIs(t, err, engine.ErrExpired)
}

func TestStats_Lists(t *testing.T) {
	r := newReadFixture(t)
	r.put("a", "web", 1)
	r.lists(listOf(engine.Cached()), "@2: a=1@2", "nothing")
	r.lists(listOf(engine.Latest()), "@2: a=1@2", "revision")
	require.EqualValues(t, 2, r.Stats().Lists)
	require.Zero(t, r.Stats().Fallbacks)
}

func TestList_CachedIgnoresLimit(t *testing.T) {
	r := newReadFixture(t)
	r.put("a", "web", 1)
	r.put("b", "web", 1)
	r.lists(engine.ListOptions{Read: engine.Cached(), Limit: 1}, "@3: a=1@2 b=1@3", "nothing")
	r.lists(engine.ListOptions{Limit: 1}, "@3: a=1@2 +1 more", "revision")
}

func TestList_IndexGivesTheSameInOrder(t *testing.T) {
	r := newReadFixture(t)
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
