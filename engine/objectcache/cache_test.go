package objectcache_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

func TestGet_ObjectAppearsChangesAndGoes(t *testing.T) {
	r := started(t)
	ref := r.acquire("ns/token")
	r.requireErr(ref, objectcache.ErrNotFound)
	r.put(secret{Name: "ns/token", Data: "one"})
	r.requireGet(ref, "one")
	r.put(secret{Name: "ns/token", Data: "two"})
	r.requireGet(ref, "two")
	r.delete("ns/token")
	r.requireErr(ref, objectcache.ErrNotFound)
	ref.Release()
	r.requireErr(ref, objectcache.ErrReleased)
	r.requireRunning()
}

func TestReferences_MoreCostTheSourceNothing(t *testing.T) {
	r := started(t)
	refs := []*objectcache.Ref[secret]{r.acquire("ns/token")}
	r.requireRunning("ns/token")
	for range 20 {
		refs = append(refs, r.acquire("ns/token"))
	}
	for _, ref := range refs {
		r.requireErr(ref, objectcache.ErrNotFound)
	}
	require.Equal(t, 1, r.source.ListCalls())
	require.Equal(t, 1, r.source.WatchCalls())
	require.Equal(t, objectcache.Stats{References: 21, Keys: 1, Synced: 1, Reflectors: 1, Starts: 1}, r.cache.Stats())
	for _, ref := range refs[1:] {
		ref.Release()
	}
	r.requireRunning("ns/token")
	refs[0].Release()
	r.requireRunning()
	require.Equal(t, 1, r.source.ListCalls())
}

func TestImmutable_ReflectorStopsIfAndOnlyIf(t *testing.T) {
	const key = "ns/token"
	for _, test := range []struct {
		name    string
		initial *secret
		later   *secret
		stopped bool
	}{
		{"there is none", nil, nil, false},
		{"created mutable", nil, &secret{Name: key, Data: "1"}, false},
		{"created immutable", nil, &secret{Name: key, Data: "1", Immutable: true}, true},
		{"mutable stays so", &secret{Name: key, Data: "1"}, &secret{Name: key, Data: "2"}, false},
		{"mutable becomes immutable", &secret{Name: key, Data: "1"}, &secret{Name: key, Data: "2", Immutable: true}, true},
		{"immutable from the start", &secret{Name: key, Data: "1", Immutable: true}, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := started(t)
			if test.initial != nil {
				r.put(*test.initial)
			}
			ref := r.acquire(key)
			r.settle()
			last := test.initial
			if test.later != nil {
				r.put(*test.later)
				last = test.later
			}
			if last == nil {
				r.requireErr(ref, objectcache.ErrNotFound)
			} else {
				r.requireGet(ref, last.Data)
			}
			if test.stopped {
				r.requireRunning()
			} else {
				r.requireRunning(key)
			}
		})
	}
}

// An immutable object is served, even if the source deletes it, until all
// references are released.
func TestImmutable_IsStillServed(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "old", Immutable: true})
	ref := r.acquire("a")
	r.requireGet(ref, "old")
	r.delete("a")
	r.put(secret{Name: "a", Data: "new"})
	r.advance(10 * maxIdle)
	r.requireGet(ref, "old")
	another := r.acquire("a")
	ref.Release()
	r.requireGet(another, "old")
	require.Equal(t, 1, r.source.ListCalls())
	another.Release()
	r.settle()
	r.requireGet(r.acquire("a"), "new")
	r.requireRunning("a")
}

func TestIdle_WhatIsNotReadIsNotFollowed(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	r.advance(maxIdle - 1)
	r.requireRunning("a")
	r.advance(1)
	r.requireRunning()
	require.Equal(t, 1, r.cache.Stats().Idle)

	another := r.acquire("a") // is no read
	r.requireRunning()

	r.put(secret{Name: "a", Data: "2"})
	r.requireGet(ref, "2") // not what it was when it stopped
	r.requireGet(another, "2")
	r.requireRunning("a")
	require.Equal(t, 2, r.source.ListCalls())
}

func TestIdle_ReadingNowAndThenKeepsItFollowed(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	for range 10 {
		r.requireGet(ref, "1")
		r.advance(maxIdle - time.Second)
		r.requireRunning("a")
	}
	r.advance(time.Second)
	r.requireRunning()
	require.Equal(t, 1, r.source.ListCalls())
}

func TestIdle_Never(t *testing.T) {
	r := started(t, func(c *objectcache.Config[secret]) { c.MaxIdle = objectcache.NeverIdle })
	ref := r.acquire("a")
	r.advance(1000 * time.Hour)
	r.requireRunning("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	require.Zero(t, r.host.Timers())
}

// A wall clock may be set back and forth: the cache goes by elapsed time, as far as
// its clock can measure it.
func TestIdle_AClockSetBackDoesNotDelayItForEver(t *testing.T) {
	r := started(t)
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	r.clock.Jump(-1000 * time.Hour)
	r.advance(maxIdle)
	r.requireRunning("a")
	r.requireErr(ref, objectcache.ErrNotFound) // read at the new time
	r.advance(maxIdle)
	r.requireRunning()
}

func TestIdle_NotBeforeTheObjectHasArrived(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	r.source.FailList(1<<30, nil)
	ref := r.acquire("a")
	r.advance(10 * maxIdle)
	require.Equal(t, 1, r.cache.Stats().Reflectors)
	r.requireErr(ref, objectcache.ErrNotSynced, engine.ErrIdle, enginetest.ErrInjected)

	r.source.FailList(0, nil)
	r.advance(retry)
	r.requireGet(ref, "1")
	r.advance(maxIdle)
	r.requireRunning() // now it is
}

// An object that takes longer to arrive than MaxIdle is there for the read that
// waited for it.
func TestIdle_AnArrivalCountsAsARead(t *testing.T) {
	r := started(t)
	r.source.FailList(1<<30, nil)
	ref := r.acquire("a")
	r.advance(2 * maxIdle)
	r.source.FailList(0, nil)
	r.advance(retry)
	r.requireRunning("a")
	r.advance(maxIdle - retry)
	r.requireErr(ref, objectcache.ErrNotFound)
	require.EqualValues(t, 1, r.cache.Stats().Starts)
}

func TestReferences_AreCounted(t *testing.T) {
	r := started(t)
	one, two, other := r.acquire("a"), r.acquire("a"), r.acquire("b")
	r.requireRunning("a", "b")
	for range 3 { // only the first counts
		one.Release()
	}
	r.requireRunning("a", "b")
	require.Equal(t, 2, r.cache.Stats().References)
	r.requireErr(one, objectcache.ErrReleased)
	r.requireErr(two, objectcache.ErrNotFound)
	two.Release()
	r.requireRunning("b")
	other.Release()
	r.requireRunning()
	require.Zero(t, r.cache.Stats().Keys)
}

func TestOwners_RegisteringIsIdempotentAndByDifference(t *testing.T) {
	r := started(t)
	owners := objectcache.NewOwners[string](r.cache)
	require.NoError(t, owners.Register("pod", "a", "b", "a"))
	r.requireRunning("a", "b")
	for range 3 {
		require.NoError(t, owners.Register("pod", "b", "a"))
	}
	require.Equal(t, 2, r.cache.Stats().References)
	require.NoError(t, owners.Register("pod", "b", "c"))
	r.requireRunning("b", "c")
	require.EqualValues(t, 3, r.cache.Stats().Starts, "what is still needed is not restarted")

	_, err := owners.Get(context.Background(), "pod", "a")
	require.ErrorIs(t, err, objectcache.ErrNotRegistered)
	_, err = owners.Get(context.Background(), "pod", "b")
	require.ErrorIs(t, err, objectcache.ErrNotFound)

	owners.Unregister("pod")
	owners.Unregister("pod")
	owners.Unregister("unknown")
	r.requireRunning()
	_, err = owners.Get(context.Background(), "pod", "b")
	require.ErrorIs(t, err, objectcache.ErrNotRegistered)
}

// A pod that is created again under its name is registered before the old one,
// with another UID, is unregistered.
func TestOwners_ComeAndGoInAnyOrder(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	type pod struct{ name, uid string }
	owners := objectcache.NewOwners[pod](r.cache)
	old, recreated := pod{"web", "1"}, pod{"web", "2"}
	require.NoError(t, owners.Register(old, "a", "b"))
	r.requireRunning("a", "b")
	require.NoError(t, owners.Register(recreated, "a"))
	owners.Unregister(old)
	r.requireRunning("a")
	o, err := owners.Get(context.Background(), recreated, "a")
	require.NoError(t, err)
	require.Equal(t, "1", o.Value.Data)
	require.EqualValues(t, 2, r.cache.Stats().Starts)
	owners.Unregister(recreated)
	r.requireRunning()
}

func TestOwners_ARegistrationThatFailsChangesNothing(t *testing.T) {
	r := started(t)
	owners := objectcache.NewOwners[string](r.cache)
	require.NoError(t, owners.Register("pod", "a"))
	err := owners.Register("pod", "b", "a", "not//a/key")
	require.ErrorIs(t, err, objectcache.ErrInvalidKey)
	require.ErrorContains(t, err, "pod")
	r.requireRunning("a")
	require.Equal(t, 1, r.cache.Stats().References)
	_, err = owners.Get(context.Background(), "pod", "a")
	require.ErrorIs(t, err, objectcache.ErrNotFound)
}

// The kubelet polls every 10 ms, for at most 1 s, and then says that it could not
// sync, but not why: so pods fail to mount what is only slow. Here a Get waits on
// a signal, for as long as its context allows.
func TestGet_WaitsForASignalAndDoesNotPoll(t *testing.T) {
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

func TestGet_SaysWhatIsWrongWithTheSource(t *testing.T) {
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
		require.EqualError(t, err, `object "a": not synced: context deadline exceeded: the source's last error is: failed by a rule of the test`)
	})
}

// realCache returns a cache on a host of its own that runs by itself. Both end
// with the test.
func realCache(t *testing.T, change ...func(*objectcache.Config[secret])) (*objectcache.Cache[secret], *spySource) {
	source := newSpySource(enginetest.SourceOptions{Blocks: true})
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

// In the kubelet, unregistering a pod takes the object away from a newer pod with
// the same name, which then gets "not registered". Here each has a reference of its
// own, valid until its own Release.
func TestReferences_ReleasingOneLeavesTheOthers(t *testing.T) {
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

// In the kubelet, a release without a reference counts -1, so that the count never
// comes to 0: the entry and its watch stay for ever. Here only what was acquired
// can be released, once.
func TestReferences_ReleasingTwiceDoesNothing(t *testing.T) {
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
// waits for the end of the one before, even if the source ignores that its call was
// cancelled.
func TestReflectors_QuickRestartsRunOne(t *testing.T) {
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

func TestNew_ConfigErrorsNameTheField(t *testing.T) {
	source := newSpySource(enginetest.SourceOptions{})
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

func TestAcquire_ValidatesKeys(t *testing.T) {
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
func TestGet_IgnoresKeysBelow(t *testing.T) {
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

func TestImmutable_APanicIsReportedAndMeansNo(t *testing.T) {
	r := started(t, func(c *objectcache.Config[secret]) {
		c.Immutable = func(s secret) bool { return s.Immutable || s.Data[0] == '!' }
	})
	r.put(secret{Name: "a"}) // without data, the predicate panics
	ref := r.acquire("a")
	r.requireGet(ref, "")
	r.requireRunning("a")
	require.Len(t, r.told, 1)
	require.ErrorIs(t, r.told[0], usercode.ErrPanic)
	r.put(secret{Name: "a", Data: "!"})
	r.requireGet(ref, "!")
	r.requireRunning()
}
