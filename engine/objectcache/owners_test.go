package objectcache_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/objectcache"
)

func TestOwners_RegisteringIsIdempotentAndByDifference(t *testing.T) {
	r := newFixture(t)
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
	r := newFixture(t)
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
	r := newFixture(t)
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
