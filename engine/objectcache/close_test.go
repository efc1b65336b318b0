package objectcache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

func TestClose_EndsEverything(t *testing.T) {
	r := newFixture(t)
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

func TestClose_BeforeAnythingHasRun(t *testing.T) {
	for _, key := range []string{"", "a"} {
		r := newOpenFixture(t, 1)
		if key != "" {
			r.acquire(key)
		}
		r.close()
	}
}

func TestHost_ItsEndIsTheEndOfTheCache(t *testing.T) {
	r := newOpenFixture(t, 1)
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

// A cache may be closed before its actors have had a turn.
func TestClose_AtOnceLeavesNoActor(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	source := newSpySource(enginetest.SourceOptions{})
	for range 1000 {
		cache, err := objectcache.New(objectcache.Config[secret]{Source: engine.SourceOf[secret](source), Host: host})
		require.NoError(t, err)
		require.NoError(t, cache.Close())
		require.Zero(t, host.Actors())
	}
	require.NoError(t, source.Close())
	require.NoError(t, host.Close())
}

// The host may be closed before the cache has had a single turn.
func TestHost_EndsBeforeAnythingHasRun(t *testing.T) {
	r := newOpenFixture(t, 1)
	ref := r.acquire("a")
	require.NoError(t, r.host.Close())
	r.requireErr(ref, objectcache.ErrClosed)
	_, err := r.cache.Acquire("a")
	require.ErrorIs(t, err, objectcache.ErrClosed)
	r.close()
}

// A source that does not return holds up the end of the host, but not the calls of Get.
func TestHost_ItsEndEndsGetsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		cache, source := realCache(t, func(c *objectcache.Config[secret]) { c.Host = host })
		stuck := make(chan struct{})
		source.gate = func(context.Context, string) { <-stuck }
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		got, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := ref.Get(context.Background())
			got <- err
		}()
		synctest.Wait()
		require.Empty(t, got)
		go func() { closed <- host.Close() }()
		synctest.Wait()
		require.Empty(t, closed)
		require.Len(t, got, 1)
		require.ErrorIs(t, <-got, objectcache.ErrClosed)
		close(stuck)
		require.NoError(t, <-closed)
	})
}

// A Get that waits ends with its context, its reference or the cache.
func TestGet_WaitingEnds(t *testing.T) {
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

// An update that is on its way while the cache closes does not make the object readable again.
func TestClose_WhatArrivesLateIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arriving := make(chan struct{})
		host, err := engine.NewHost(engine.HostConfig{Workers: 4})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, host.Close()) })
		cache, source := realCache(t, func(c *objectcache.Config[secret]) {
			c.Host = host
			c.Immutable = func(secret) bool {
				<-arriving
				return false
			}
		})
		_, err = source.Add(secret{Name: "a", Data: "1"})
		require.NoError(t, err)
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- cache.Close() }()
		synctest.Wait()
		_, err = ref.Get(t.Context())
		require.ErrorIs(t, err, objectcache.ErrClosed)
		close(arriving)
		require.NoError(t, <-closed)
		_, err = ref.Get(t.Context())
		require.ErrorIs(t, err, objectcache.ErrClosed)
	})
}

func TestClose_NamesWhatStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{CloseTimeout: time.Second})
		require.NoError(t, err)
		source := newSpySource(enginetest.SourceOptions{Blocks: true})
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

// A host of the cache's own ends when the source returns, whether the cache is closed again or
// not: the bubble would not end before its workers.
func TestClose_ThatGaveUpStillEndsTheHost(t *testing.T) {
	for name, again := range map[string]bool{"closed again": true, "closed once": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSpySource(enginetest.SourceOptions{Blocks: true})
				stuck := make(chan struct{})
				source.gate = func(context.Context, string) { <-stuck }
				cache, err := objectcache.New(objectcache.Config[secret]{Source: engine.SourceOf[secret](source)})
				require.NoError(t, err)
				_, err = cache.Acquire("a")
				require.NoError(t, err)
				synctest.Wait()
				began := time.Now()
				require.ErrorIs(t, cache.Close(), actors.ErrStillRunning)
				require.Equal(t, engine.DefaultCloseTimeout, time.Since(began))
				time.Sleep(time.Hour) // of virtual time
				close(stuck)
				if again {
					require.NoError(t, cache.Close())
					require.Zero(t, cache.Host().Actors())
				}
				require.NoError(t, source.Close())
			})
		})
	}
}

// OnError runs in a turn of one of the cache's actors. Nothing else closes the cache:
// the bubble would not end before the workers of its host.
func TestClose_FromAFunctionOfTheConfigurationReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSource(secretConfig())
		source.FailList(1, nil)
		var cache *objectcache.Cache[secret]
		failed := make(chan error, 1)
		cache, err := objectcache.New(objectcache.Config[secret]{
			Source: engine.SourceOf[secret](source), OnError: func(error) { failed <- cache.Close() },
		})
		require.NoError(t, err)
		began := time.Now()
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		defer ref.Release()
		require.ErrorIs(t, <-failed, engine.ErrInHandler)
		require.Zero(t, time.Since(began))
		_, err = cache.Acquire("b")
		require.ErrorIs(t, err, objectcache.ErrClosed)
		require.NoError(t, source.Close())
	})
}
