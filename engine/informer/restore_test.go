package informer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// unreachable is a source whose watches fail while down is set.
type unreachable struct {
	backend.ListerWatcher
	down bool
}

func (s *unreachable) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if s.down {
		return nil, errors.New("the network is down")
	}
	return s.ListerWatcher.Watch(ctx, opts)
}

func (s *unreachable) StoreID(ctx context.Context) (string, error) {
	return backend.StoreID(ctx, s.ListerWatcher)
}

// An informer has listed, and cannot watch. Meanwhile storage beneath its engine is
// restored, and comes to the same revision with other content, as the engine knows by
// the time that the informer can watch.
func TestInformer_ListsAgainWhenStorageWasRestoredBeforeItsWatchBegan(t *testing.T) {
	clock, executor := enginetest.NewVirtualClock(), actors.NewSeeded(1)
	host, err := engine.NewHost(engine.HostConfig{Clock: clock, Executor: executor, Seed: 1})
	require.NoError(t, err)
	newMemory := func(names ...string) *memory.Backend {
		cfg := podConfig()
		b, err := memory.New(cfg.Schema(), memory.Options{Clock: host.Clock(), FirstRevision: 1})
		require.NoError(t, err)
		e, err := engine.New(engine.Config[pod]{Key: cfg.Key, Labels: cfg.Labels, Host: host, Backend: b, NoCache: true})
		require.NoError(t, err)
		for i, name := range names {
			_, err = e.Put(t.Context(), pod{Name: name, N: i})
			require.NoError(t, err)
		}
		require.NoError(t, e.Close())
		return b
	}
	storage := faulty.New(newMemory("a", "b", "c"), faulty.Options{})
	cfg := podConfig()
	cfg.Host, cfg.Backend = host, storage
	cfg.Backoff = reflector.Backoff{Initial: 100 * time.Millisecond, Max: 100 * time.Millisecond}
	e, err := engine.New(cfg)
	require.NoError(t, err)
	executor.Run()
	source := &unreachable{e.Source().ListerWatcher, true}
	follower, err := informer.New(informer.Config[pod]{
		Source: engine.SourceOf[pod](source), Host: host,
		Backoff: reflector.Backoff{Initial: time.Second, Max: time.Second, Jitter: reflector.NoJitter},
	})
	require.NoError(t, err)
	executor.Run()
	require.NotNil(t, follower.Get("b"))

	require.NoError(t, storage.Replace(newMemory("a", "x", "a")).Close())
	for range 9 {
		clock.Advance(100 * time.Millisecond)
		executor.Run()
	}
	require.NoError(t, e.WaitForRevision(t.Context(), 4))
	source.down = false
	for range 5 {
		clock.Advance(time.Second)
		executor.Run()
	}
	require.NotNil(t, follower.Get("x"))
	require.Nil(t, follower.Get("b"))
	require.Equal(t, 2, follower.Get("a").Value.N, "an object of the same revision is another one")
	require.Equal(t, uint64(1), follower.Stats().Source.Relists[reflector.Restored])

	require.NoError(t, follower.Close())
	require.NoError(t, e.Close())
	require.NoError(t, storage.Close())
	require.NoError(t, host.Close())
}

// newRestorable is a fixture over storage whose identity can be changed.
func newRestorable(t *testing.T) (*fixture, *restorable) {
	t.Helper()
	identified := &restorable{id: "first"}
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		identified.ListerWatcher = cfg.Source.ListerWatcher
		cfg.Source = engine.SourceOf[pod](identified)
	})
	r.executor.Run()
	return r, identified
}

func TestOverlay_ForgetsAWriteToStorageThatWasReplaced(t *testing.T) {
	r, identified := newRestorable(t)
	overlay := r.Overlay(0)
	overlay.Wrote(written(pod{Name: "lost"}, 100))
	overlay.Wrote(written(pod{Name: "again"}, 100))
	require.NotNil(t, overlay.Get("lost"))
	identified.id = "second"
	r.relist(func() error { r.write(pod{Name: "a"}); return nil })
	require.NotNil(t, overlay.Get("a"))
	require.Nil(t, overlay.Get("lost"))
	for _, name := range []string{"lost", "again"} { // one that was read meanwhile, and one that was not
		overlay.Wrote(written(pod{Name: name}, 50))
		require.NotNil(t, overlay.Get(name), "a write to the new storage counts, whatever its revision")
	}
}

// Once another storage has taken the first one's place, a relist notifies only of what has changed since.
func TestRelist_OfStorageThatHasTakenAnothersPlaceIsLikeAnyOther(t *testing.T) {
	r, identified := newRestorable(t)
	l, _ := r.subscribe()
	r.put(pod{Name: "a"})
	l.recorded()
	identified.id = "second"
	r.relist(func() error { r.write(pod{Name: "b"}); return nil })
	l.recorded()
	overlay := r.Overlay(0)
	overlay.Wrote(written(pod{Name: "mine"}, 100))
	kept := r.Get("a")
	r.relist(func() error { r.write(pod{Name: "c"}); return nil })
	require.Equal(t, []string{"ADDED c@4 relist"}, l.recorded())
	require.Same(t, kept, r.Get("a"))
	require.NotNil(t, overlay.Get("mine"))
}

// Writes to the storage before, whose revisions may be higher, take no room.
func TestOverlay_FullOfWritesToStorageThatWasReplaced(t *testing.T) {
	r, identified := newRestorable(t)
	overlay := r.Overlay(4)
	for i := range 4 {
		overlay.Wrote(written(pod{Name: fmt.Sprint("lost", i)}, 100))
	}
	identified.id = "second"
	r.relist(func() error { r.write(pod{Name: "a"}); return nil })
	overlay.Wrote(written(pod{Name: "b"}, 50))
	require.NotNil(t, overlay.Get("b"))
}

// restorable is a source whose storage has an identity.
type restorable struct {
	backend.ListerWatcher
	id string
}

func (s *restorable) StoreID(context.Context) (string, error) { return s.id, nil }

// A source that does not know its storage goes back in time, which only its revisions
// show.
func TestRelist_OfStorageWithoutIdentityThatWentBack(t *testing.T) {
	anonymous := &unidentified{}
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		anonymous.ListerWatcher = cfg.Source.ListerWatcher
		cfg.Source = engine.SourceOf[pod](anonymous)
	})
	l, _ := r.subscribe()
	for _, name := range []string{"a", "b", "c"} {
		r.put(pod{Name: name})
	}
	overlay := r.Overlay(0)
	overlay.Wrote(written(pod{Name: "lost"}, 100))
	l.recorded()
	restored := enginetest.NewSourceWith(podConfig(), enginetest.SourceOptions{Clock: r.host.Clock()})
	t.Cleanup(func() { require.NoError(t, restored.Close()) })
	_, err := restored.Add(pod{Name: "a", N: 9})
	require.NoError(t, err)
	anonymous.ListerWatcher = restored
	r.source.ResetWatches(nil)
	r.pass(time.Minute)
	require.Equal(t, []string{"a"}, keys(r.List(nil)))
	require.Equal(t, 9, r.Get("a").Value.N, "an object of the same revision is another one")
	require.Equal(t, []string{"DELETED b@3 relist stale", "DELETED c@4 relist stale", "MODIFIED a@2→2 relist"}, l.recorded(),
		"no deletion is of a revision before its object's")
	require.EqualValues(t, 2, r.Revision(), "a later revision cannot be read yet")
	require.Nil(t, overlay.Get("lost"))
}

// It has come to the same revision again when its list is accepted. That it went back, only
// what came before shows.
func TestRelist_OfStorageWithoutIdentityThatWentBackAndOn(t *testing.T) {
	for name, noticed := range map[string]struct {
		resume error // of the first watch after it went back
		while  time.Duration
		as     reflector.Reason
	}{
		"as the watch is refused":     {nil, 1500 * time.Millisecond, reflector.Future},
		"as an older list is refused": {engine.ErrExpired, 2500 * time.Millisecond, reflector.Repeated},
	} {
		t.Run(name, func(t *testing.T) {
			anonymous := &unidentified{}
			r := newFixture(t, func(cfg *informer.Config[pod]) {
				anonymous.ListerWatcher = cfg.Source.ListerWatcher
				cfg.Source = engine.SourceOf[pod](anonymous)
			})
			for _, name := range []string{"a", "b", "c"} {
				r.put(pod{Name: name})
			}
			overlay := r.Overlay(0)
			overlay.Wrote(written(pod{Name: "lost"}, 100))
			restored := enginetest.NewSourceWith(podConfig(), enginetest.SourceOptions{Clock: r.host.Clock()})
			t.Cleanup(func() { require.NoError(t, restored.Close()) })
			add := func(p pod) {
				_, err := restored.Add(p)
				require.NoError(t, err)
			}
			add(pod{Name: "a", N: 9})
			if noticed.resume != nil {
				restored.FailWatch(1, noticed.resume)
			}
			anonymous.ListerWatcher = restored
			r.source.ResetWatches(nil)
			r.pass(noticed.while) // another list comes after another pause
			require.Equal(t, uint64(1), r.Stats().Source.Relists[noticed.as])
			require.Equal(t, []string{"a", "b", "c"}, keys(r.List(nil)))
			add(pod{Name: "x"})
			add(pod{Name: "y"})
			r.pass(time.Minute)
			require.Equal(t, []string{"a", "x", "y"}, keys(r.List(nil)))
			require.Equal(t, 9, r.Get("a").Value.N, "an object of the same revision is another one")
			require.Nil(t, overlay.Get("lost"))
		})
	}
}

// unidentified hides the identity of a source's storage.
type unidentified struct{ backend.ListerWatcher }
