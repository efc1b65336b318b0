package registry_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// keeping is a kind whose objects stay, while they are deleted, until they have the size zero.
func keeping() registry.Config[Widget] {
	cfg := config()
	cfg.Strategy.Keep = func(w *Widget) bool { return w.Spec.Size > 0 }
	cfg.Strategy.Terminate = func(w *Widget) { w.Status.Phase += "Terminating" }
	return cfg
}

func TestKeep_AnObjectStaysUntilTheRulesLetItGo(t *testing.T) {
	s := newStore(t, keeping())
	o := create(t, s, widget("a", 2))
	for range 2 { // the second changes nothing
		marked, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
		require.NoError(t, err)
		require.False(t, gone)
		require.NotNil(t, marked.Value.DeletionTimestamp)
		require.Equal(t, "Terminating", marked.Value.Status.Phase, "set once")
		require.Equal(t, o.Revision+1, marked.Revision)
	}
	smaller, _, err := s.Update(t.Context(), o.Key, grow(-1), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, smaller.Value.Spec.Size)
	_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.NoError(t, err)
	_, _, err = s.Update(t.Context(), o.Key, grow(-1), registry.WriteOptions{})
	require.NoError(t, err)
	_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)

	o = create(t, s, widget("b", 0))
	_, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, gone, "nothing keeps it")
}

// Finalizers and the rules each keep an object for themselves.
func TestKeep_FinalizersKeepAnObjectThatTheRulesLetGo(t *testing.T) {
	s := newStore(t, keeping())
	w := finalized("a")
	w.Spec.Size = 1
	o := create(t, s, w)
	_, _, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	_, _, err = s.Update(t.Context(), o.Key, grow(-1), registry.WriteOptions{})
	require.NoError(t, err)
	_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.NoError(t, err)
	_, _, err = s.Update(t.Context(), o.Key, setFinalizers(), registry.WriteOptions{})
	require.NoError(t, err)
	_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestKeep_ADryRunMarksNothing(t *testing.T) {
	s := newStore(t, keeping())
	o := create(t, s, widget("a", 2))
	_, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{DryRun: true})
	require.NoError(t, err)
	require.False(t, gone)
	now, err := s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, o.Revision, now.Revision)
	require.Empty(t, now.Value.Status.Phase)
}

func TestGeneration_IsLeftOutIfTheKindHasNone(t *testing.T) {
	cfg := keeping()
	cfg.Strategy.NoGeneration = true
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 2))
	require.Zero(t, o.Value.Generation)
	o, _, err := s.Update(t.Context(), o.Key, grow(1), registry.WriteOptions{})
	require.NoError(t, err)
	require.Zero(t, o.Value.Generation)
	o, _, err = s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.NotNil(t, o.Value.DeletionTimestamp)
	require.Zero(t, o.Value.Generation)
}

// An object lives as long after each change, and an update without one is no change.
func TestTTL_CountsFromTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.TTL = time.Hour
		stored, err := memory.New(registry.Schema(cfg), memory.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, stored.Close()) })
		cfg.Engine.Backend = stored
		s := newStore(t, cfg)
		is := func(key string) bool {
			_, err := s.Engine().Get(t.Context(), key, engine.GetOptions{})
			if err != nil {
				require.ErrorIs(t, err, engine.ErrNotFound)
			}
			return err == nil
		}
		changed, same := create(t, s, widget("changed", 1)), create(t, s, widget("same", 1))
		time.Sleep(50 * time.Minute)
		_, _, err = s.Update(t.Context(), changed.Key, grow(1), registry.WriteOptions{})
		require.NoError(t, err)
		again, _, err := s.Update(t.Context(), same.Key, grow(0), registry.WriteOptions{})
		require.NoError(t, err)
		require.Equal(t, same.Revision, again.Revision)
		time.Sleep(20 * time.Minute)
		require.True(t, is(changed.Key))
		require.False(t, is(same.Key))
		time.Sleep(time.Hour)
		require.False(t, is(changed.Key))
	})
}
