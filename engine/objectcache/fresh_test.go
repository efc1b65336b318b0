package objectcache_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/internal/askedwatch"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// over returns an engine, and a cache of its objects on the same host.
func over(t testing.TB) (*engine.Engine[secret], *objectcache.Cache[secret], context.Context) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	secrets, err := engine.New(secretConfig())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, secrets.Close()) })
	cache, err := objectcache.New(objectcache.Config[secret]{Source: secrets.Source(), Host: secrets.Host(), Immutable: immutable})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cache.Close()) })
	return secrets, cache, ctx
}

// A program reads what it has written, be it a state or a deletion, also of an object
// beside which others were written.
func TestGetNotOlderThan_SeesTheWrite(t *testing.T) {
	secrets, cache, ctx := over(t)
	ref, err := cache.Acquire("token")
	require.NoError(t, err)
	for n := range 100 {
		written, err := secrets.Put(ctx, secret{Name: "token", Data: strconv.Itoa(n)})
		require.NoError(t, err)
		read, err := ref.GetNotOlderThan(ctx, written.Revision)
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(n), read.Value.Data)
	}
	other, err := secrets.Put(ctx, secret{Name: "other"})
	require.NoError(t, err)
	read, err := ref.GetNotOlderThan(ctx, other.Revision)
	require.NoError(t, err)
	require.Equal(t, "99", read.Value.Data)
	gone, err := secrets.Delete(ctx, "token", engine.DeleteOptions{})
	require.NoError(t, err)
	_, err = ref.GetNotOlderThan(ctx, gone.Revision)
	require.ErrorIs(t, err, objectcache.ErrNotFound)
	written, err := secrets.Put(ctx, secret{Name: "token", Data: "again"})
	require.NoError(t, err)
	read, err = ref.GetNotOlderThan(ctx, written.Revision)
	require.NoError(t, err, "the object was deleted before")
	require.Equal(t, "again", read.Value.Data)
}

// The cache reaches a revision only when Get returns its object.
func TestGetNotOlderThan_ReturnsNothingOlderWhileTheWriteArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arriving := make(chan struct{})
		cache, source := realCache(t, func(c *objectcache.Config[secret]) {
			c.Immutable = func(s secret) bool {
				if s.Data == "2" {
					<-arriving
				}
				return false
			}
		})
		_, err := source.Add(secret{Name: "a", Data: "1"})
		require.NoError(t, err)
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		_, err = ref.Get(t.Context())
		require.NoError(t, err)
		written, err := source.Modify(secret{Name: "a", Data: "2"})
		require.NoError(t, err)
		synctest.Wait()
		got := make(chan string, 1)
		go func() {
			o, err := ref.GetNotOlderThan(t.Context(), written)
			if err != nil {
				t.Errorf("GetNotOlderThan: %v", err)
			} else {
				got <- o.Value.Data
			}
		}()
		synctest.Wait()
		require.Empty(t, got)
		close(arriving)
		require.Equal(t, "2", <-got)
	})
}

// A revision that the cache has reached needs no source.
func TestGetNotOlderThan_ReturnsWhatItHasWhileTheSourceIsDown(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	other, err := r.source.Add(secret{Name: "other"})
	require.NoError(t, err)
	_, err = ref.GetNotOlderThan(t.Context(), other)
	require.NoError(t, err)
	r.source.FailWatch(1<<30, nil)
	r.source.FailList(1<<30, nil)
	r.source.ResetWatches(nil)
	r.advance(2 * retry)
	require.Empty(t, r.source.watched())
	o, err := ref.GetNotOlderThan(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, "1", o.Value.Data)
}

func TestGetNotOlderThan_WaitEnds(t *testing.T) {
	errEnough := errors.New("enough")
	for name, test := range map[string]struct {
		end func(cache *objectcache.Cache[secret], ref *objectcache.Ref[secret], cancel context.CancelCauseFunc)
		why error
	}{
		"context": {func(_ *objectcache.Cache[secret], _ *objectcache.Ref[secret], cancel context.CancelCauseFunc) {
			cancel(errEnough)
		}, errEnough},
		"release": {func(_ *objectcache.Cache[secret], ref *objectcache.Ref[secret], _ context.CancelCauseFunc) {
			ref.Release()
		}, objectcache.ErrReleased},
		"close": {func(cache *objectcache.Cache[secret], _ *objectcache.Ref[secret], _ context.CancelCauseFunc) {
			_ = cache.Close()
		}, objectcache.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache, source := realCache(t)
				written, err := source.Add(secret{Name: "token"})
				require.NoError(t, err)
				ref, err := cache.Acquire("token")
				require.NoError(t, err)
				another, err := cache.Acquire("token") // so that a release is not the last
				require.NoError(t, err)
				defer another.Release()
				_, err = ref.GetNotOlderThan(t.Context(), written)
				require.NoError(t, err)
				of, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				failed := make(chan error, 1)
				go func() {
					_, err := ref.GetNotOlderThan(of, written+1000)
					failed <- err
				}()
				synctest.Wait()
				require.Empty(t, failed, "it waits")
				test.end(cache, ref, cancel)
				synctest.Wait()
				require.Len(t, failed, 1)
				require.ErrorIs(t, <-failed, test.why)
			})
		})
	}
}

// An immutable object does not change, so that no revision is waited for.
func TestGetNotOlderThan_OfAnImmutableObject(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "ca", Data: "1", Immutable: true})
	ref := r.acquire("ca")
	r.requireGet(ref, "1")
	o, err := ref.GetNotOlderThan(t.Context(), 1<<40)
	require.NoError(t, err)
	require.Equal(t, "1", o.Value.Data)
}

// laggingSource is a replica: a list may be older than what it has said before.
type laggingSource struct {
	*spySource
	page *backend.List
}

func (s *laggingSource) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if s.page != nil {
		return s.page, nil
	}
	return s.spySource.List(ctx, opts)
}

// shySource is storage that others use, too: its watches do not say how far it is unless they
// are asked, of which the first questions are lost.
type shySource struct {
	*spySource
	lost atomic.Int32
}

func (s *shySource) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := s.spySource.Watch(ctx, opts)
	return askedwatch.New(w, opts, &s.lost), err
}

// shyCache is a cache of a shySource, and a reference to an object of it that it has.
func shyCache(t *testing.T) (*shySource, *spySource, *objectcache.Ref[secret]) {
	t.Helper()
	shy := &shySource{}
	cache, source := realCache(t, func(c *objectcache.Config[secret]) {
		shy.spySource = c.Source.ListerWatcher.(*spySource)
		c.Source = engine.SourceOf[secret](shy)
	})
	_, err := source.Add(secret{Name: "a"})
	require.NoError(t, err)
	ref, err := cache.Acquire("a")
	require.NoError(t, err)
	_, err = ref.Get(t.Context())
	require.NoError(t, err)
	return shy, source, ref
}

// A question for the source that is lost, as when its watch breaks, is asked again: no event
// may follow that says how far it is.
func TestGetNotOlderThan_AsksTheSourceAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shy, source, ref := shyCache(t)
		synctest.Wait() // until it is watched
		other, err := source.Add(secret{Name: "other"})
		require.NoError(t, err)
		shy.lost.Store(2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = ref.GetNotOlderThan(ctx, other)
		require.NoError(t, err)
	})
}

// However many calls wait for a revision of an object, its source is asked every now and then.
func TestGetNotOlderThan_ManyCallsThatWaitAskAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shy, _, ref := shyCache(t)
		const never = 1 << 30
		shy.lost.Store(never)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				_, err := ref.GetNotOlderThan(ctx, never)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		asked := never - shy.lost.Load()
		require.Greater(t, asked, int32(5), "about every 100 ms")
		require.Less(t, asked, int32(200), "and by each call when it begins")
	})
}

// What the cache had before the object was idle does not count: the source may be behind it.
func TestGetNotOlderThan_OfAnObjectThatWasIdle(t *testing.T) {
	var lagging *laggingSource
	r := newFixture(t, func(c *objectcache.Config[secret]) {
		lagging = &laggingSource{spySource: c.Source.ListerWatcher.(*spySource)}
		c.Source = engine.SourceOf[secret](lagging)
	})
	r.put(secret{Name: "a", Data: "1"})
	old, err := r.source.List(t.Context(), backend.ListOptions{Prefix: "a"})
	require.NoError(t, err)
	written, err := r.source.Modify(secret{Name: "a", Data: "2"})
	require.NoError(t, err)
	ref := r.acquire("a")
	o, err := ref.GetNotOlderThan(t.Context(), written)
	require.NoError(t, err)
	require.Equal(t, "2", o.Value.Data)
	r.advance(maxIdle)
	r.requireRunning()

	lagging.page = old
	r.source.Stall()
	_, err = ref.GetNotOlderThan(t.Context(), written)
	require.ErrorIs(t, err, objectcache.ErrNotSynced)
	r.requireGet(ref, "1")
	r.source.Resume()
	o, err = ref.GetNotOlderThan(t.Context(), written)
	require.NoError(t, err)
	require.Equal(t, "2", o.Value.Data)
}

// hasChanged reports whether a channel of Changed is closed.
func hasChanged(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func TestChanged_SignalsWhatGetReturns(t *testing.T) {
	r := newFixture(t)
	ref, beside := r.acquire("token"), r.acquire("token")
	changed := ref.Changed()
	step := func(what string, want bool, do func()) {
		do()
		r.settle()
		require.Equal(t, want, hasChanged(changed), what)
		if want {
			changed = ref.Changed()
			require.False(t, hasChanged(changed), "each change is one signal: %s", what)
		}
	}
	step("it is found to be missing", true, r.settle)
	step("another object", false, func() { r.put(secret{Name: "other"}) })
	step("it is created", true, func() { r.put(secret{Name: "token", Data: "1"}) })
	step("it is read", false, func() { r.requireGet(ref, "1") })
	step("it is updated", true, func() { r.put(secret{Name: "token", Data: "2"}) })
	step("it is deleted", true, func() { r.delete("token") })
	step("it is created again", true, func() { r.put(secret{Name: "token", Data: "3"}) })
	step("it is not read for long", true, func() { r.advance(2 * maxIdle) })
	step("it is followed again", true, func() { r.requireGet(ref, "3") })
	step("a reference is released", true, beside.Release)
	require.NoError(t, r.cache.Close())
	require.True(t, hasChanged(changed), "the cache is closed")
	require.True(t, hasChanged(ref.Changed()), "and stays so")
}

// A caller that waits for an object that has not arrived is woken when its reference or the cache is closed.
func TestChanged_SignalsThatNothingWillArrive(t *testing.T) {
	r := newFixture(t)
	r.source.FailList(1<<30, nil)
	ref, released := r.acquire("token"), r.acquire("token")
	r.settle()
	changed := ref.Changed()
	require.False(t, hasChanged(changed))
	released.Release()
	require.True(t, hasChanged(changed), "a reference is released")
	require.True(t, hasChanged(released.Changed()), "nothing changes for it any more")
	changed = ref.Changed()
	require.False(t, hasChanged(changed))
	require.NoError(t, r.cache.Close())
	require.True(t, hasChanged(changed), "the cache is closed")
}

// Each Get asks a source that has ended once more. If that fails as before, nothing has changed:
// the loop of the documentation waits.
func TestChanged_OfASourceThatHasEnded(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "token", Data: "1"})
	ref := r.acquire("token")
	r.requireGet(ref, "1")
	changed := ref.Changed()
	r.source.FailWatch(1, store.ErrUnsupported)
	r.source.FailList(4, store.ErrUnsupported)
	r.source.ResetWatches(nil)
	r.advance(retry)
	require.True(t, hasChanged(changed), "it is not served any more")
	for range 3 {
		changed = ref.Changed()
		r.requireErr(ref, objectcache.ErrNotSynced, store.ErrUnsupported)
		r.settle()
		require.False(t, hasChanged(changed), "it is still not served")
	}
	other := r.acquire("other")
	changed = other.Changed()
	r.requireErr(other, objectcache.ErrNotSynced, store.ErrUnsupported)
	require.True(t, hasChanged(changed), "it does not arrive")

	changed = ref.Changed()
	r.requireGet(ref, "1")
	require.True(t, hasChanged(changed), "it has arrived again")
}

// The loop of the documentation sees the last state, however fast it changes.
func TestChanged_LoopSeesTheLastState(t *testing.T) {
	secrets, cache, ctx := over(t)
	ref, err := cache.Acquire("token")
	require.NoError(t, err)
	go func() {
		for n := range 200 {
			_, _ = secrets.Put(ctx, secret{Name: "token", Data: strconv.Itoa(n)})
		}
	}()
	for last := ""; last != "199"; {
		changed := ref.Changed()
		o, err := ref.Get(ctx)
		if !errors.Is(err, objectcache.ErrNotFound) {
			require.NoError(t, err)
			if last = o.Value.Data; last == "199" {
				break
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			require.NoError(t, context.Cause(ctx))
		}
	}
}

func ExampleRef_Changed() {
	ctx := context.Background()
	secrets, err := engine.New(secretConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer secrets.Close()
	cache, err := objectcache.New(objectcache.Config[secret]{Source: secrets.Source()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()
	ref, err := cache.Acquire("default/token")
	if err != nil {
		fmt.Println(err)
		return
	}
	written, err := secrets.Put(ctx, secret{Name: "default/token", Data: "old"})
	if err == nil {
		_, err = ref.GetNotOlderThan(ctx, written.Revision)
	}
	for err == nil {
		changed := ref.Changed()
		var token *engine.Object[secret]
		if token, err = ref.Get(ctx); err != nil {
			break
		}
		fmt.Println("using the", token.Value.Data, "token")
		if token.Value.Data == "new" {
			break
		}
		_, err = secrets.Put(ctx, secret{Name: "default/token", Data: "new"})
		<-changed
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// using the old token
	// using the new token
}

func ExampleRef_GetNotOlderThan() {
	ctx := context.Background()
	secrets, err := engine.New(secretConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer secrets.Close()
	cache, err := objectcache.New(objectcache.Config[secret]{Source: secrets.Source()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()
	ref, err := cache.Acquire("default/token")
	if err != nil {
		fmt.Println(err)
		return
	}
	written, err := secrets.Put(ctx, secret{Name: "default/token", Data: "new"})
	if err != nil {
		fmt.Println(err)
		return
	}
	token, err := ref.GetNotOlderThan(ctx, written.Revision)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(token.Value.Data)
	// Output: new
}
