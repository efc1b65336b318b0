package registry_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// twoWriters returns two stores over one storage. The function before calls do once, right before the first
// store's next call of that kind reaches storage.
func twoWriters(t *testing.T) (first, second *registry.Store[Widget], before func(op faulty.Op, do func())) {
	t.Helper()
	mine, others := config(), config()
	stored, err := memory.New(registry.Schema(mine), memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stored.Close()) })
	storage := faulty.New(stored, faulty.Options{})
	mine.Engine.Backend, others.Engine.Backend = storage, stored
	return newStore(t, mine), newStore(t, others), func(op faulty.Op, do func()) {
		storage.Add(faulty.Rule{Ops: []faulty.Op{op}, Times: 1, Do: func(_ context.Context, _ *faulty.Call, proceed func()) {
			do()
			proceed()
		}})
	}
}

// A deletion with a revision does not mark a newer state.
func TestDelete_OfARevisionMarksNoNewerState(t *testing.T) {
	s, other, before := twoWriters(t)
	o := create(t, s, finalized("a"))
	before(faulty.OpPut, func() {
		_, _, err := other.Update(t.Context(), o.Key, grow(1), registry.WriteOptions{})
		require.NoError(t, err)
	})
	_, _, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{Revision: o.Revision})
	require.ErrorIs(t, err, engine.ErrConflict)
	now, err := other.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, now.Value.DeletionTimestamp)
}

// An update that removes the last finalizer deletes the object that had it. If another object has taken the
// name by then, the update changes that one and does not delete it.
func TestUpdate_ThatEndsADeletionDeletesNoOtherObject(t *testing.T) {
	s, other, before := twoWriters(t)
	o := create(t, s, finalized("a"))
	_, _, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	var again *engine.Object[Widget]
	before(faulty.OpRemove, func() {
		_, _, err := other.Update(t.Context(), o.Key, setFinalizers(), registry.WriteOptions{})
		require.NoError(t, err)
		again = create(t, other, finalized("a"))
	})
	next, _, err := s.Update(t.Context(), o.Key, setFinalizers(), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, again.Value.UID, next.Value.UID)
	require.Empty(t, next.Value.Finalizers)
	_, err = other.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.NoError(t, err)
}
