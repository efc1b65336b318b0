package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// All pages of a list are of the storage that had the first one, whatever revision another is
// at, and whether the cache or storage has the page.
func TestList_PagesAreOfOneTimeline(t *testing.T) {
	for _, uncached := range []bool{false, true} {
		for _, life := range lives {
			t.Run(fmt.Sprintf("%s, uncached %v", life.name, uncached), func(t *testing.T) {
				f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = uncached })
				for n, name := range []string{"a", "b", "c"} {
					f.put(name, "web", n)
				}
				var tokens []engine.ListOptions
				for _, opts := range []engine.ListOptions{{}, {Labels: "app=web"}} {
					opts.Limit = 1
					l, err := f.List(t.Context(), opts)
					require.NoError(t, err)
					opts.Continue = l.Continue
					_, err = f.List(t.Context(), opts)
					require.NoError(t, err, "the storage is the same")
					tokens = append(tokens, opts)
				}

				f.replaceStorage(life.before, life.then)
				for _, opts := range tokens {
					_, err := f.List(t.Context(), opts)
					require.ErrorIs(t, err, engine.ErrExpired, "%+v", opts)
				}
				l, err := f.List(t.Context(), engine.ListOptions{Limit: 1})
				require.NoError(t, err, "the storage that is there is listed")
				require.Equal(t, "other", l.Items[0].Key)
			})
		}
	}
}

// A page is continued on storage that was replaced only a moment ago, which the cache has not
// noticed, only from the cache.
func TestList_PageOfReplacedStorageComesFromTheCacheUntilThatNotices(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("b", "web", 2)
	token := f.lists(engine.ListOptions{Limit: 1, Read: engine.Cached()}, "@3: a=1@2 b=2@3", "nothing")
	require.Empty(t, token, "a list of the cache is whole")
	token = f.lists(engine.ListOptions{Limit: 1}, "@3: a=1@2 +1 more", "revision")
	require.NoError(t, f.storage.Replace(f.newMemory()).Close())
	f.lists(engine.ListOptions{Limit: 1, Continue: token}, "@3: b=2@3", "nothing")
}

// sameStorage claims to be one storage, whatever is beneath it.
type sameStorage struct{ *faulty.Backend }

func (sameStorage) StoreID(context.Context) (string, error) { return "the same", nil }

// Storage that goes back in time without a new identity is on another timeline, too.
func TestList_PagesOfStorageThatWentBackUnderOneIdentity(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.Backend = sameStorage{c.Backend.(*faulty.Backend)} })
	for n, name := range []string{"a", "b", "c"} {
		f.put(name, "web", n)
	}
	first, err := f.List(t.Context(), engine.ListOptions{Limit: 1})
	require.NoError(t, err)
	f.replaceStorage(1, 5)
	_, err = f.List(t.Context(), engine.ListOptions{Limit: 1, Continue: first.Continue})
	require.ErrorIs(t, err, engine.ErrExpired)
}

// A list for a selector that reads several pages of storage shows one storage, too.
func TestList_ThatReadsSeveralPagesOfStorageWhileItIsReplaced(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	fill := func(b backend.Backend, names string) {
		for n := range 1500 {
			o := f.schema.New()
			o.Key, *f.schema.Pointer(o).(*pod) = fmt.Sprintf("%s%04d", names, n), pod{Name: fmt.Sprintf("%s%04d", names, n), App: "web"}
			f.schema.Describe(o)
			_, err := b.Put(t.Context(), o, nil, backend.PutOptions{})
			require.NoError(t, err)
		}
	}
	fill(f.storage, "a")
	other := f.newMemory()
	fill(other, "z")
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: faulty.After(func(context.Context, *faulty.Call) {
		require.NoError(t, f.storage.Replace(other).Close())
	})})
	_, err := f.List(t.Context(), engine.ListOptions{Labels: "app=web", Limit: 1400})
	require.ErrorIs(t, err, engine.ErrExpired)
}

// Engines on one storage continue each other's lists, as replicas do behind one address,
// even if one of them has seen storage being replaced and the other has not.
func TestList_PageOfAnotherEngineOnTheSameStorage(t *testing.T) {
	f := newReadFixture(t)
	f.replaceStorage(1, 0)
	f.put("a", "web", 1)
	f.put("b", "web", 2)
	c := podsByNumber()
	c.Host, c.Backend = f.host, f.storage
	second, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, second.Close()) }()
	for _, way := range [][2]*engine.Engine[pod]{{f.Engine, second}, {second, f.Engine}} {
		first, err := way[0].List(t.Context(), engine.ListOptions{Limit: 1})
		require.NoError(t, err)
		next, err := way[1].List(t.Context(), engine.ListOptions{Limit: 1, Continue: first.Continue})
		require.NoError(t, err)
		require.Equal(t, "b", next.Items[0].Key)
	}
}

// An engine does not continue a list of other storage, whichever engine began it.
func TestList_PageOfAnotherEngineOnOtherStorage(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("b", "web", 2)
	first, err := f.List(t.Context(), engine.ListOptions{Limit: 1})
	require.NoError(t, err)
	c := podsByNumber()
	c.Host, c.Backend = f.host, f.newMemory()
	other, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(other.Close(), c.Backend.Close())) }()
	for _, name := range []string{"x", "y"} {
		_, err := other.Put(t.Context(), pod{Name: name})
		require.NoError(t, err)
	}
	_, err = other.List(t.Context(), engine.ListOptions{Limit: 1, Continue: first.Continue})
	require.ErrorIs(t, err, engine.ErrExpired)
}

// A page of storage that is replaced while it is read does not continue the list.
func TestList_PageOfStorageThatIsReplacedMeanwhile(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	f.put("a", "web", 1)
	f.put("b", "web", 2)
	first, err := f.List(t.Context(), engine.ListOptions{Limit: 1})
	require.NoError(t, err)
	other := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	other.put("x", "web", 1)
	other.put("y", "web", 2)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 1, Do: func(ctx context.Context, c *faulty.Call, _ func()) {
		require.NoError(t, f.storage.Replace(f.newMemory()).Close())
		c.Page, c.Err = other.storage.List(ctx, c.ListOptions)
	}})
	_, err = f.List(t.Context(), engine.ListOptions{Limit: 1, Continue: first.Continue})
	require.ErrorIs(t, err, engine.ErrExpired)
}

// Storage that has gone back shows that by its revision, before the cache has noticed.
func TestList_LatestIsOfStorageThatHasGoneBackEvenBeforeTheCacheNotices(t *testing.T) {
	f := newReadFixture(t)
	for n := range 3 {
		f.put("a", "web", n)
	}
	f.goBack()
	f.put("b", "web", 7)
	f.lists(listOf(engine.Latest()), "@2: b=7@2", "revision, list")
	f.lists(engine.ListOptions{Labels: "app=web"}, "@2: b=7@2", "revision, list")
	f.lists(listOf(engine.Cached()), "@4: a=2@4", "nothing")
	f.storage.BreakWatches(nil)
	f.notice()
	f.asked()
	f.lists(listOf(engine.Latest()), "@2: b=7@2", "revision")
}

// The same storage may answer by a replica that lags, and the cache has more than that.
func TestList_LatestIsOfTheCacheIfStorageLagsBehindIt(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.put("a", "web", 2)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpRevision}, Do: faulty.After(func(_ context.Context, c *faulty.Call) { c.Revision-- })})
	f.lists(listOf(engine.Latest()), "@3: a=2@3", "revision")
	w, err := f.Watch(t.Context(), engine.WatchOptions{InitialState: true, Linearizable: true})
	require.NoError(t, err)
	require.Equal(t, []string{"ADDED a@3 initial"}, until(t, t.Context(), w, 3))
}
