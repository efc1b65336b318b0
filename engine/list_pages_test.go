package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Pages of the backend after the first are asked for by their token alone, which
// holds the revision.
func TestList_ExactOnesReadTheBackendPageByPage(t *testing.T) {
	c := cfg()
	c.NoCache = true
	e, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	var last engine.Revision
	for i := range 2100 {
		app := "web"
		if i > 2000 {
			app = "rare"
		}
		o, err := e.Put(t.Context(), pod{Name: fmt.Sprintf("p%04d", i), App: app})
		require.NoError(t, err)
		last = o.Revision
	}
	l, err := e.List(t.Context(), engine.ListOptions{Labels: "app=rare", Limit: 5, Read: engine.Exactly(last)})
	require.NoError(t, err)
	require.Len(t, l.Items, 5)
	require.Equal(t, "p2001", l.Items[0].Key)
}

// The page of a selector may read several of the backend's, of which the second expires. What the first
// had is not returned, so whatever goes on begins before it.
func TestList_ExpiredPageOffersAllThatFollowsThePageBefore(t *testing.T) {
	beneath, err := memory.New(cfg().Schema(), memory.Options{})
	require.NoError(t, err)
	storage := faulty.New(beneath, faulty.Options{})
	c := cfgOver(storage)
	c.NoCache = true
	e, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	rare := map[int]bool{1: true, 2: true, 1500: true}
	for i := range 1600 {
		app := "web"
		if rare[i] {
			app = "rare"
		}
		_, err := e.Put(t.Context(), pod{Name: fmt.Sprintf("p%04d", i), App: app})
		require.NoError(t, err)
	}
	writes := 0
	forget := faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.After(func(ctx context.Context, _ *faulty.Call) {
		writes++
		o, err := e.Put(ctx, pod{Name: fmt.Sprint("q", writes)})
		require.NoError(t, err)
		require.NoError(t, e.Compact(ctx, o.Revision))
	})}
	opts := engine.ListOptions{Labels: "app=rare", Limit: 1}
	first, err := e.List(t.Context(), opts)
	require.NoError(t, err)
	require.Equal(t, "p0001", first.Items[0].Key)

	storage.Add(forget)
	opts.Limit, opts.Continue = 2, first.Continue
	_, err = e.List(t.Context(), opts)
	require.ErrorIs(t, err, engine.ErrExpired)
	var offer *backend.ExpiredContinueError
	require.ErrorAs(t, err, &offer)
	opts.Continue = offer.Continue
	rest, err := e.List(t.Context(), opts)
	require.NoError(t, err)
	require.Equal(t, "p0002 p1500", rest.Items[0].Key+" "+rest.Items[1].Key)
	require.Greater(t, rest.Revision, first.Revision)

	storage.Add(forget)
	_, err = e.List(t.Context(), engine.ListOptions{Labels: "app=rare", Limit: 3})
	require.ErrorIs(t, err, engine.ErrExpired)
	require.NotErrorAs(t, err, &offer, "no page was before")
}

// A selector may match few objects, so the backend is asked for more than the page has.
func TestList_OfFewMatchesAsksTheBackendOnce(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	for i := range 100 {
		f.put(fmt.Sprintf("p%02d", i), "web", i)
	}
	f.put("q", "rare", 1)
	f.lists(engine.ListOptions{Labels: "app=rare", Limit: 1}, "@102: q=1@102", "list")
}

func TestVerify_ComparesMoreThanAPage(t *testing.T) {
	e, err := engine.New(cfg())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	var last engine.Revision
	for i := range 10_001 { // one more than the backend is asked for at once
		o, err := e.Put(t.Context(), pod{Name: fmt.Sprintf("p%05d", i)})
		require.NoError(t, err)
		last = o.Revision
	}
	require.NoError(t, e.WaitForRevision(t.Context(), last))
	require.NoError(t, e.Verify(t.Context()))
}

// Without a cache each list is read from storage, so that of a limit, however fresh, is a page.
func TestList_CachedHasPagesWithoutACache(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	for n, name := range []string{"a", "b", "c"} {
		f.put(name, "web", n)
	}
	page, next, err := f.list(engine.ListOptions{Read: engine.Cached(), Limit: 2})
	require.NoError(t, err)
	require.Equal(t, "@4: a=0@2 b=1@3 +1 more", page)
	page, next, err = f.list(engine.ListOptions{Continue: next, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, "@4: c=2@4", page)
	require.Empty(t, next)
}

// The objects under a key are not those of the key.
func TestList_OfOneKeyReadsOneObjectOfTheBackend(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	for _, name := range []string{"a", "a/1", "a/2"} {
		f.put(name, "web", 1)
	}
	read := 0
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		read += len(c.Page.Items)
	})})
	f.lists(engine.ListOptions{Key: "a"}, "@4: a=1@2", "list")
	require.Equal(t, 1, read)
}

// A list without a limit is asked for as a whole, so that no compaction ends it halfway.
func TestList_OfASelectorWithoutALimitAsksTheBackendOnce(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	for i := range 1001 {
		f.put(fmt.Sprintf("p%04d", i), "web", i)
	}
	f.put("q", "rare", 1)
	f.lists(engine.ListOptions{Labels: "app=rare"}, "@1003: q=1@1003", "list")
}

// The token of an expired page names no revision: the cache goes on in its newest state.
func TestList_CacheServesTheRestOfAnExpiredPage(t *testing.T) {
	f := newReadFixture(t)
	for n, name := range []string{"a", "b", "c"} {
		f.put(name, "web", n)
	}
	offered := backend.Token{Start: "a"}.Encode()
	f.lists(engine.ListOptions{Limit: 1, Continue: offered}, "@4: b=1@3 +1 more", "revision")
	require.Zero(t, f.Stats().Fallbacks)
}
