package objectcache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// The kubelet polls every 10 ms, for at most 1 s, and then says that it could not
// sync, but not why: so pods fail to mount what is only slow. Here a Get waits
// for as long as its context allows, until the very moment of the arrival.
func TestPain_GetWaitsForASignalNotForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := realCache(t)
		_, err := source.Add(secret{Name: "a", Data: "1"})
		require.NoError(t, err)
		source.FailList(7, nil)
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		began := time.Now()
		o, err := ref.Get(context.Background())
		require.NoError(t, err)
		require.Equal(t, "1", o.Value.Data)
		require.Equal(t, 7*retry, time.Since(began))
	})
}

func TestPain_AGetThatGivesUpSaysWhatIsWrongWithTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := realCache(t)
		source.FailList(1<<30, nil)
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err = ref.Get(ctx)
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorIs(t, err, objectcache.ErrNotSynced)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, enginetest.ErrInjected)
		var notSynced *objectcache.NotSyncedError
		require.ErrorAs(t, err, &notSynced)
		require.Equal(t, "a", notSynced.Key)
		require.EqualError(t, err, `object "a": not synced: context deadline exceeded: the source's last error is: failed by the test`)
	})
}

// realCache returns a cache on a host of its own that runs by itself. Both end
// with the test.
func realCache(t *testing.T, change ...func(*objectcache.Config[secret])) (*objectcache.Cache[secret], *spy) {
	source := newSpy(enginetest.SourceOptions{Blocks: true})
	cfg := objectcache.Config[secret]{
		Source: engine.SourceOf[secret](source), Immutable: immutable, MaxIdle: maxIdle,
		Backoff: reflector.Backoff{Initial: retry, Max: retry, Factor: 1, Jitter: reflector.NoJitter},
	}
	for _, f := range change {
		f(&cfg)
	}
	cache, err := objectcache.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cache.Close())
		require.NoError(t, source.Close())
		require.Zero(t, cache.Stats().Keys)
		require.Zero(t, cache.Stats().Reflectors)
		require.Empty(t, source.watched())
	})
	return cache, source
}

// A node with many pods has thousands of watches at the server. Here the keys
// share the one stream of an engine.
func TestPain_TooManyWatchesShareOneStream(t *testing.T) {
	const keys = 1000
	storage := enginetest.NewSource(secretConfig())
	e := enginetest.New(t, engine.Config[secret]{Key: secretConfig().Key, Backend: storage}, enginetest.Deterministic(1))
	cache, err := objectcache.New(objectcache.Config[secret]{Source: e.Engine().Source(), Host: e.Host(), Immutable: immutable})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cache.Close()) })
	e.List(engine.ListOptions{}) // the engine has begun
	lists, watches := storage.ListCalls(), storage.WatchCalls()
	refs := make([]*objectcache.Ref[secret], keys)
	for n := range refs {
		refs[n], err = cache.Acquire(fmt.Sprintf("secret-%d", n))
		require.NoError(t, err)
	}
	for n, ref := range refs {
		_, err := ref.Get(context.Background())
		require.ErrorIs(t, err, objectcache.ErrNotFound)
		e.Create(secret{Name: fmt.Sprintf("secret-%d", n), Data: "here", Immutable: n%2 == 0})
	}
	e.Advance(0)
	for _, ref := range refs {
		o, err := ref.Get(context.Background())
		require.NoError(t, err)
		require.Equal(t, "here", o.Value.Data)
	}
	require.Equal(t, keys/2, cache.Stats().Reflectors)
	require.Equal(t, lists, storage.ListCalls(), "lists of the storage")
	require.Equal(t, watches, storage.WatchCalls(), "watches of the storage")
	require.Equal(t, 1, watches)
}

// In the kubelet, whoever unregisters under a name takes the object away from
// who has registered under the same name since: "not registered". Here each has
// a handle, which is valid until its own Release.
func TestPain_WhatOneReleasesAnotherStillHas(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	old := r.acquire("a")
	recreated := r.acquire("a")
	for range 10 {
		old.Release()
		r.settle()
		r.requireGet(recreated, "1")
	}
	r.requireRunning("a")
}

// In the kubelet, a release by somebody who holds nothing counts -1, so that
// the references never come to 0: the entry and its watch stay for ever. Here
// there is nothing to release but what was acquired, once.
func TestPain_NoReleaseIsWithoutAnAcquire(t *testing.T) {
	r := started(t)
	for range 3 {
		ref := r.acquire("a")
		ref.Release()
		ref.Release()
		r.settle()
		ref.Release()
		r.requireRunning()
		require.Zero(t, r.cache.Stats().Keys)
	}
	ref := r.acquire("a")
	r.requireRunning("a")
	r.requireErr(ref, objectcache.ErrNotFound)
}

// In the kubelet, two quick restarts can run one Reflector twice. Here a new one
// waits for the end of the one before, even if the source does not care that its
// call was cancelled.
func TestPain_QuickRestartsRunOneReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := realCache(t)
		stuck := make(chan struct{})
		var calls atomic.Int32
		source.gate = func(context.Context, string) {
			calls.Add(1)
			<-stuck // whatever the context says
		}
		for range 10 {
			ref, err := cache.Acquire("a")
			require.NoError(t, err)
			synctest.Wait()
			ref.Release()
			synctest.Wait()
		}
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 1, calls.Load(), "lists begun")
		require.Equal(t, 1, cache.Stats().Reflectors)
		close(stuck)
		_, err = ref.Get(context.Background())
		require.ErrorIs(t, err, objectcache.ErrNotFound)
		require.Equal(t, 1, source.mostAtOnce())
		require.EqualValues(t, 2, cache.Stats().Starts)
	})
}
