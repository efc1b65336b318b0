package objectcache_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

func TestClientRow182_AnObjectAppearsChangesAndGoes(t *testing.T) {
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

func TestClientRow183_MoreReferencesCostTheSourceNothing(t *testing.T) {
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

func TestClientRow184_AReflectorStopsIffItsObjectIsImmutable(t *testing.T) {
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

// What is immutable is served on, even if the source breaks its word, until
// nobody refers to it any more.
func TestClientRow184_AnImmutableObjectIsServedOn(t *testing.T) {
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

func TestClientRow185_WhatIsNotReadIsNotFollowed(t *testing.T) {
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

func TestClientRow185_ReadingNowAndThenKeepsItFollowed(t *testing.T) {
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

func TestClientRow185_NeverIdle(t *testing.T) {
	r := started(t, func(c *objectcache.Config[secret]) { c.MaxIdle = objectcache.NeverIdle })
	ref := r.acquire("a")
	r.advance(1000 * time.Hour)
	r.requireRunning("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	require.Zero(t, r.host.Timers())
}

// The clock of the wall may be set back and forth: a cache asks how much time
// has passed, as far as its clock can tell.
func TestClientRow185_AClockSetBackMakesNothingIdleForEver(t *testing.T) {
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

func TestClientRow186_WhatHasNotArrivedIsNeverIdle(t *testing.T) {
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

// An object that takes longer to arrive than MaxIdle is there for the one who
// waited for it.
func TestClientRow186_AnArrivalCountsAsARead(t *testing.T) {
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

func TestClientRow187_ReferencesAreCounted(t *testing.T) {
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

func TestClientRow189_RegisteringIsIdempotentAndByDifference(t *testing.T) {
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
	require.EqualValues(t, 3, r.cache.Stats().Starts, "what stays is not started anew")

	_, err := owners.Get(context.Background(), "pod", "a")
	require.ErrorIs(t, err, objectcache.ErrNotRegistered)
	_, err = owners.Get(context.Background(), "pod", "b")
	require.ErrorIs(t, err, objectcache.ErrNotFound)

	owners.Unregister("pod")
	owners.Unregister("pod")
	owners.Unregister("nobody")
	r.requireRunning()
	_, err = owners.Get(context.Background(), "pod", "b")
	require.ErrorIs(t, err, objectcache.ErrNotRegistered)
}

// A pod that is created again under its name is registered before the old one,
// with another UID, is unregistered.
func TestClientRow189_OwnersComeAndGoInAnyOrder(t *testing.T) {
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

func TestClientRow189_ARegistrationThatFailsChangesNothing(t *testing.T) {
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
