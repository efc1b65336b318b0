package registry_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// writes are the store's ways to write to the object "default/a".
func writes(s *registry.Store[Widget]) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"create": func() error {
			_, err := s.Create(ctx, widget("b", 1), registry.WriteOptions{})
			return err
		},
		"update": func() error {
			_, _, err := s.Update(ctx, "default/a", grow(1), registry.WriteOptions{})
			return err
		},
		"status": func() error {
			_, err := s.UpdateStatus(ctx, "default/a", func(old *engine.Object[Widget]) (Widget, error) {
				w := old.Value
				w.Status.Phase = "Other"
				return w, nil
			}, registry.WriteOptions{})
			return err
		},
		"delete": func() error {
			_, _, err := s.Delete(ctx, "default/a", registry.DeleteOptions{})
			return err
		},
	}
}

// A handler holds up the draining of the store's engine. What is written meanwhile
// could not be delivered any more, so it is refused; and so it is in the end, even if
// storage is still there.
func TestWrites_AreRefusedOnceTheEngineIsDrained(t *testing.T) {
	cfg := config()
	storage, err := memory.New(registry.Schema(cfg), memory.Options{})
	require.NoError(t, err)
	cfg.Engine.Backend = storage
	s := newStore(t, cfg)
	held, release := make(chan struct{}), make(chan struct{})
	_, err = s.Engine().Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[Widget]) {
		close(held)
		<-release
	})
	require.NoError(t, err)
	create(t, s, widget("a", 1))
	<-held
	var drained sync.WaitGroup
	drained.Go(func() {
		if err := s.Engine().Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for !errors.Is(err, engine.ErrDraining) {
		_, err = s.Engine().Watch(t.Context(), engine.WatchOptions{})
	}
	for name, write := range writes(s) {
		require.ErrorIs(t, write(), engine.ErrDraining, name)
	}
	close(release)
	drained.Wait()
	for name, write := range writes(s) {
		require.ErrorIs(t, write(), engine.ErrEngineClosed, name)
	}
	o, err := storage.Get(t.Context(), "default/a")
	require.NoError(t, err, "nothing was deleted")
	require.Equal(t, o.Created, o.Revision, "nor updated")
	_, err = storage.Get(t.Context(), "default/b")
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.NoError(t, storage.Close())
}
