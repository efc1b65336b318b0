package objectcache_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func TestConfigErrorsNameTheField(t *testing.T) {
	source := newSpy(enginetest.SourceOptions{})
	t.Cleanup(func() { require.NoError(t, source.Close()) })
	for field, cfg := range map[string]objectcache.Config[secret]{
		"Source":          {},
		"MaxIdle":         {Source: engine.SourceOf[secret](source), MaxIdle: -2},
		"Backoff.Initial": {Source: engine.SourceOf[secret](source), Backoff: reflector.Backoff{Initial: -1}},
		"Backoff.Jitter":  {Source: engine.SourceOf[secret](source), Backoff: reflector.Backoff{Jitter: 11}},
	} {
		_, err := objectcache.New(cfg)
		require.ErrorIs(t, err, objectcache.ErrConfig, field)
		require.ErrorContains(t, err, field)
	}
}

func TestKeysAreValidated(t *testing.T) {
	r := started(t)
	for _, key := range []string{"", "/", "a/", "a//b", "../a", "a\x00"} {
		_, err := r.cache.Acquire(key)
		var keyError *store.KeyError
		require.ErrorAs(t, err, &keyError, "%q", key)
		require.ErrorIs(t, err, objectcache.ErrInvalidKey)
	}
	require.Zero(t, r.cache.Stats())
}

// Keys are followed as prefixes, which cover the keys below them.
func TestKeysBelowAreLeftOut(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a/b", Data: "below", Immutable: true})
	r.put(secret{Name: "ab", Data: "beside"})
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	r.put(secret{Name: "a/c", Data: "below", Immutable: true})
	r.requireErr(ref, objectcache.ErrNotFound)
	r.put(secret{Name: "a", Data: "itself"})
	r.put(secret{Name: "a/c", Data: "below again"})
	r.delete("a/b")
	r.requireGet(ref, "itself")
	r.requireRunning("a")
}

func TestABrokenWatchLosesNothing(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	r.source.ResetWatches(nil)
	r.put(secret{Name: "a", Data: "2"})
	r.requireGet(ref, "1") // what had arrived is served meanwhile
	r.advance(retry)
	r.requireGet(ref, "2")
	require.Len(t, r.told, 1)
	require.ErrorIs(t, r.told[0], objectcache.ErrSource)
	require.ErrorIs(t, r.told[0], enginetest.ErrInjected)
	require.EqualError(t, r.told[0], `object "a": source failed: watch was reset by the test`)
}

func TestHistoryThatIsGoneIsListedAnew(t *testing.T) {
	r := started(t)
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	r.source.Stall()
	r.put(secret{Name: "a", Data: "1"})
	r.put(secret{Name: "a", Data: "2"})
	require.NoError(t, r.source.Forget())
	r.source.Resume()
	r.advance(retry)
	r.requireGet(ref, "2")
	require.Equal(t, 2, r.source.ListCalls())
}

// A source that is closed will not come back, so waiting makes no sense: the
// reads end with the cause, and each tries once more.
func TestASourceThatIsGoneForGoodEndsReads(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	before := r.acquire("a")
	r.requireGet(before, "1")
	require.NoError(t, r.source.Close())
	r.advance(retry)
	lists := r.source.ListCalls()
	r.requireErr(before, objectcache.ErrNotSynced, store.ErrClosed)
	after := r.acquire("b")
	r.requireErr(after, objectcache.ErrNotSynced, store.ErrClosed)
	r.requireErr(after, objectcache.ErrNotSynced, store.ErrClosed)
	require.Equal(t, lists+3, r.source.ListCalls())
	r.requireRunning()
	var notSynced *objectcache.NotSyncedError
	_, err := after.Get(context.Background())
	require.ErrorAs(t, err, &notSynced)
	require.NoError(t, notSynced.Cause, "nobody gave up")
}

// A source that panics is one that fails.
func TestASourceThatPanics(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	r.source.gate = func(context.Context, string) { panic("no storage today") }
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotSynced, backend.ErrPanic)
	r.source.gate = nil
	r.advance(retry)
	r.requireGet(ref, "1")
}

// traitless panics where a Reflector cannot even begin.
type traitless struct{ *spy }

func (traitless) Traits() backend.Traits { panic("what traits?") }

func TestASourceThatCannotBegin(t *testing.T) {
	var told []error
	r := started(t, func(c *objectcache.Config[secret]) {
		c.Source = engine.SourceOf[secret](traitless{c.Source.ListerWatcher.(*spy)})
		c.OnError = func(err error) { told = append(told, err) }
	})
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotSynced, backend.ErrPanic)
	r.requireRunning()
	require.NotEmpty(t, told)
	require.ErrorIs(t, told[0], objectcache.ErrSource)
}

func TestAPanicInImmutableIsReportedAndMeansNo(t *testing.T) {
	r := started(t, func(c *objectcache.Config[secret]) {
		c.Immutable = func(s secret) bool { return s.Immutable || s.Data[0] == '!' }
	})
	r.put(secret{Name: "a"}) // without data, the predicate panics
	ref := r.acquire("a")
	r.requireGet(ref, "")
	r.requireRunning("a")
	require.Len(t, r.told, 1)
	require.ErrorIs(t, r.told[0], backend.ErrPanic)
	r.put(secret{Name: "a", Data: "!"})
	r.requireGet(ref, "!")
	r.requireRunning()
}

func TestAPanicInOnErrorChangesNothing(t *testing.T) {
	r := started(t, func(c *objectcache.Config[secret]) { c.OnError = func(error) { panic("worse") } })
	r.put(secret{Name: "a", Data: "1"})
	r.source.FailList(3, nil)
	ref := r.acquire("a")
	r.advance(3 * retry)
	r.requireGet(ref, "1")
}

// A Goexit, as of a t.FailNow, cannot be contained: the Reflector fails, and its
// supervisor starts it anew.
func TestAReflectorThatFailsIsStartedAnew(t *testing.T) {
	r := started(t, func(c *objectcache.Config[secret]) { c.Immutable = nil })
	failing := true
	r.source.gate = func(context.Context, string) {
		if failing {
			failing = false
			panic(errors.New("once"))
		}
	}
	ref := r.acquire("a")
	r.advance(retry)
	r.requireErr(ref, objectcache.ErrNotFound)
	r.requireRunning("a")
}

func TestCloseEndsEverything(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "live", Data: "1"})
	r.put(secret{Name: "frozen", Data: "1", Immutable: true})
	r.put(secret{Name: "idle", Data: "1"})
	var refs []*objectcache.Ref[secret]
	for _, key := range []string{"idle", "live", "frozen"} {
		refs = append(refs, r.acquire(key))
	}
	r.advance(maxIdle / 2)
	r.requireGet(refs[1], "1")
	r.advance(maxIdle / 2)
	r.source.FailList(1<<30, nil)
	refs = append(refs, r.acquire("arriving"))
	r.settle()
	released := r.acquire("live")
	released.Release()
	require.NoError(t, r.cache.Close())
	require.NoError(t, r.cache.Close())
	for _, ref := range refs {
		r.requireErr(ref, objectcache.ErrClosed)
		ref.Release()
		r.requireErr(ref, objectcache.ErrReleased)
	}
	r.requireErr(released, objectcache.ErrReleased)
	_, err := r.cache.Acquire("live")
	require.ErrorIs(t, err, objectcache.ErrClosed)
	require.Zero(t, r.cache.Stats().Keys)
}

func TestCloseBeforeAnythingHasRun(t *testing.T) {
	for _, key := range []string{"", "a"} {
		r := newRig(t, 1)
		if key != "" {
			r.acquire(key)
		}
		r.close()
	}
}

func TestTheEndOfTheHostIsTheEndOfTheCache(t *testing.T) {
	r := newRig(t, 1)
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	require.NoError(t, r.host.Close())
	r.requireErr(ref, objectcache.ErrClosed)
	_, err := r.cache.Acquire("a")
	require.ErrorIs(t, err, objectcache.ErrClosed)
	require.NoError(t, r.cache.Close())
	_, err = objectcache.New(objectcache.Config[secret]{Source: engine.SourceOf[secret](r.source), Host: r.host})
	require.ErrorIs(t, err, objectcache.ErrClosed)
	require.NoError(t, r.source.Close())
}

// The host may be gone before the cache has had a single turn.
func TestTheHostEndsBeforeAnythingHasRun(t *testing.T) {
	r := newRig(t, 1)
	ref := r.acquire("a")
	require.NoError(t, r.host.Close())
	r.requireErr(ref, objectcache.ErrClosed)
	_, err := r.cache.Acquire("a")
	require.ErrorIs(t, err, objectcache.ErrClosed)
	r.close()
}

// What a Reflector was about to tell when it was stopped counts no more, even if
// there is a new reference by then.
func TestALateUpdateIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{Workers: 4})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, host.Close()) })
		stuck := make(chan struct{})
		cache, source := realCache(t, func(c *objectcache.Config[secret]) {
			c.Host = host
			c.Immutable = func(s secret) bool {
				if s.Data == "2" {
					<-stuck
				}
				return false
			}
		})
		again := make(chan struct{})
		var lists atomic.Int32
		source.gate = func(context.Context, string) {
			if lists.Add(1) > 1 {
				<-again
			}
		}
		_, err = source.Add(secret{Name: "a", Data: "1"})
		require.NoError(t, err)
		old, err := cache.Acquire("a")
		require.NoError(t, err)
		synctest.Wait()
		_, err = source.Modify(secret{Name: "a", Data: "2"})
		require.NoError(t, err)
		synctest.Wait()
		old.Release()
		synctest.Wait()
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		_, err = source.Modify(secret{Name: "a", Data: "3"})
		require.NoError(t, err)
		got := make(chan string, 1)
		go func() {
			o, err := ref.Get(context.Background())
			if err != nil {
				t.Errorf("Get: %v", err)
			}
			got <- o.Value.Data
		}()
		close(stuck)
		synctest.Wait()
		require.Empty(t, got, "there is nothing to be had before the new list")
		close(again)
		require.Equal(t, "3", <-got)
	})
}

// Whoever waits is let go by the end of what they wait with: context, reference,
// or cache.
func TestWaitingEnds(t *testing.T) {
	gaveUp := errors.New("gave up")
	for name, test := range map[string]struct {
		end func(ref *objectcache.Ref[secret], cancel context.CancelCauseFunc, cache *objectcache.Cache[secret])
		why error
	}{
		"context": {func(_ *objectcache.Ref[secret], cancel context.CancelCauseFunc, _ *objectcache.Cache[secret]) {
			cancel(gaveUp)
		}, gaveUp},
		"release": {func(ref *objectcache.Ref[secret], _ context.CancelCauseFunc, _ *objectcache.Cache[secret]) {
			ref.Release()
		}, objectcache.ErrReleased},
		"close": {func(_ *objectcache.Ref[secret], _ context.CancelCauseFunc, cache *objectcache.Cache[secret]) {
			_ = cache.Close()
		}, objectcache.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache, source := realCache(t)
				source.gate = func(ctx context.Context, _ string) { <-ctx.Done() }
				ref, err := cache.Acquire("a")
				require.NoError(t, err)
				another, err := cache.Acquire("a") // so that a release is not the last
				require.NoError(t, err)
				defer another.Release()
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				ended := make(chan error)
				go func() {
					_, err := ref.Get(ctx)
					ended <- err
				}()
				synctest.Wait()
				test.end(ref, cancel, cache)
				require.ErrorIs(t, <-ended, test.why)
			})
		})
	}
}

func TestCloseNamesWhatStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{CloseTimeout: time.Second})
		require.NoError(t, err)
		source := newSpy(enginetest.SourceOptions{Blocks: true})
		stuck := make(chan struct{})
		source.gate = func(context.Context, string) { <-stuck }
		cache, err := objectcache.New(objectcache.Config[secret]{Source: engine.SourceOf[secret](source), Host: host, Name: "secrets"})
		require.NoError(t, err)
		_, err = cache.Acquire("a")
		require.NoError(t, err)
		synctest.Wait()
		err = cache.Close()
		require.ErrorIs(t, err, actors.ErrStillRunning)
		require.ErrorContains(t, err, "secrets")
		close(stuck)
		require.NoError(t, host.Close())
		require.NoError(t, source.Close())
	})
}
