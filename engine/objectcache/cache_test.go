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
)

func TestGet_ObjectAppearsChangesAndGoes(t *testing.T) {
	r := newFixture(t)
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
	r := newFixture(t)
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

func TestReferences_AreCounted(t *testing.T) {
	r := newFixture(t)
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

// In the kubelet, unregistering a pod takes the object away from a newer pod with
// the same name, which then gets "not registered". Here each has a reference of its
// own, valid until its own Release.
func TestReferences_ReleasingOneLeavesTheOthers(t *testing.T) {
	r := newFixture(t)
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
	r := newFixture(t)
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
		"Host":            {Source: engine.SourceOf[secret](source), Host: &engine.Host{}},
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
	r := newFixture(t)
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
	r := newFixture(t)
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
