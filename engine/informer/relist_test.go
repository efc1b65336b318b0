package informer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func TestRelist_IsUpdateAndAddAndNotInitial(t *testing.T) {
	r := newFixture(t, nil)
	l, _ := r.subscribe()
	for _, name := range []string{"a", "b", "c"} {
		r.put(pod{Name: name})
	}
	l.recorded()
	r.relist(func() error {
		r.write(pod{Name: "b", N: 1})
		_, err := r.source.Delete("c")
		r.write(pod{Name: "d"})
		return err
	})
	require.Equal(t, []string{"DELETED c@7 relist stale", "MODIFIED b@3→5 relist", "ADDED d@7 relist"}, l.recorded())
}

// An engine that has listed again shows its informers the difference as events.
func TestRelist_OfTheSourceIsOneToItsInformers(t *testing.T) {
	var source *enginetest.Source[pod]
	var e *engine.Engine[pod]
	r := newFixture(t, func(c *informer.Config[pod]) {
		source = enginetest.NewSourceWith(podConfig(), enginetest.SourceOptions{Clock: c.Host.Clock()})
		cfg := podConfig()
		cfg.Backend, cfg.Host, cfg.Backoff = source, c.Host, c.Backoff
		var err error
		e, err = engine.New(cfg)
		require.NoError(t, err)
		c.Source = e.Source()
	})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, r.source.Close())
	r.source = source
	l, _ := r.subscribe()
	r.put(pod{Name: "a"})
	r.put(pod{Name: "b"})
	require.Len(t, l.recorded(), 2)
	r.relist(func() error {
		_, err := r.source.Delete("a")
		r.write(pod{Name: "b", N: 1})
		return err
	})
	require.Equal(t, []string{"DELETED a@4 relist stale", "MODIFIED b@3→5 relist"}, l.recorded())
}

// The deletion of an object that was created again comes first, too.
func TestRelist_NotifiesOfDeletionsFirst(t *testing.T) {
	r := newFixture(t, nil)
	l, _ := r.subscribe()
	r.put(pod{Name: "b"})
	r.put(pod{Name: "c"})
	l.recorded()
	r.relist(func() error {
		r.write(pod{Name: "a"})
		_, err := r.source.Delete("b")
		r.write(pod{Name: "b", N: 1})
		_, err2 := r.source.Delete("c")
		return errors.Join(err, err2)
	})
	require.Equal(t, []string{"DELETED c@7 relist stale", "DELETED b@5 relist stale", "ADDED a@4 relist", "ADDED b@6 relist"}, l.recorded())
}

func TestRelist_NotifiesOnlyOfWhatChanged(t *testing.T) {
	r := newFixture(t, nil)
	l, _ := r.subscribe()
	resyncing, _ := r.subscribe(informer.HandlerOptions{Resync: time.Hour})
	r.put(pod{Name: "a"})
	r.put(pod{Name: "b"})
	l.recorded()
	resyncing.recorded()
	r.relist(func() error { r.write(pod{Name: "b", N: 1}); return nil })
	require.Equal(t, []string{"MODIFIED b@3→4 relist"}, l.recorded())
	require.Equal(t, []string{"MODIFIED b@3→4 relist"}, resyncing.recorded(), "a resync comes when it is due, not with a relist")
}

func TestRelist_HandlersSeeTheStateOfTheirNotification(t *testing.T) {
	r := newFixture(t, nil)
	l := &recorder{before: func(n informer.Notification[pod]) {
		state := r.Snapshot()
		require.GreaterOrEqual(t, state.Revision(), n.Object.Revision)
		if n.Type == store.Deleted {
			require.Nil(t, state.Get(n.Key()))
			return
		}
		require.Same(t, n.Object, state.Get(n.Key()))
	}}
	r.subscribeRecorder(l)
	for _, name := range []string{"a", "b", "c"} {
		rev := r.put(pod{Name: name})
		require.Equal(t, rev, r.Revision())
	}
	l.recorded()
	r.relist(func() error {
		_, err := r.source.Delete("b")
		r.write(pod{Name: "a", N: 1})
		r.write(pod{Name: "d"})
		return err
	})
	require.Equal(t, []string{"DELETED b@7 relist stale", "MODIFIED a@2→6 relist", "ADDED d@7 relist"}, l.recorded())
	require.Len(t, r.reported(), 1, "the watch that expired, and nothing else")
}

func TestRelist_DeleteAndRecreateIsNoUpdate(t *testing.T) {
	r := newFixture(t, nil)
	l, _ := r.subscribe()
	r.put(pod{Name: "a"})
	l.recorded()
	r.relist(func() error {
		_, err := r.source.Delete("a")
		r.write(pod{Name: "a", N: 1})
		return err
	})
	require.Equal(t, []string{"DELETED a@3 relist stale", "ADDED a@4 relist"}, l.recorded())
}

func TestIdentity_OfTheConfiguration(t *testing.T) {
	identity := func(o *informer.Object[pod]) string {
		if o.Value.N == 13 {
			panic(errBad)
		}
		return o.Value.Node
	}
	r := newFixture(t, func(cfg *informer.Config[pod]) { cfg.Identity = identity })
	l, _ := r.subscribe()
	r.put(pod{Name: "a", Node: "uid-1"})
	r.put(pod{Name: "a", Node: "uid-1", N: 1})
	r.put(pod{Name: "a", Node: "uid-2"})
	require.Equal(t, []string{
		"ADDED a@2 initial", "MODIFIED a@2→3 change", "DELETED a@3 change stale", "ADDED a@4 change",
	}, l.recorded())
	r.put(pod{Name: "a", Node: "uid-3", N: 13})
	require.Equal(t, []string{"MODIFIED a@4→5 change"}, l.recorded(), "if Identity panics, the revision of the creation counts")
	require.ErrorContains(t, r.reported()[0], "Identity")
	r.relist(func() error {
		_, err := r.source.Delete("a")
		r.write(pod{Name: "a", Node: "uid-3", N: 13})
		return err
	})
	require.Equal(t, []string{"DELETED a@6 relist stale", "ADDED a@7 relist"}, l.recorded())
}

// Handlers see only legal transitions, whatever happens to the source.
func TestRelist_HistoriesThroughFaults(t *testing.T) {
	s, source := busy(t, func(cfg *informer.Config[pod]) { cfg.Backoff = quick })
	var histories []*history
	var handles []*informer.Registration
	for i := range 12 {
		h := newHistory()
		handle, err := s.Subscribe(h.handle, informer.HandlerOptions{
			Policy: informer.Policy(i % 3), Buffer: 1 + i, Resync: time.Duration(i%2) * time.Microsecond,
		})
		require.NoError(t, err)
		histories, handles = append(histories, h), append(handles, handle)
	}
	var faults sync.WaitGroup
	done := make(chan struct{})
	faults.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			switch i % 3 {
			case 0:
				source.ResetWatches(nil)
			case 1:
				source.FailList(1, nil)
				source.ResetWatches(engine.ErrExpired)
			case 2:
				if err := source.Forget(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	last := churn(t, source, 7, 5000, 20)
	close(done)
	faults.Wait()
	require.NoError(t, s.WaitForRevision(t.Context(), last))
	for i, handle := range handles {
		require.NoError(t, handle.Remove(t.Context(), informer.Drain))
		histories[i].checkState(t, s.Snapshot())
	}
}

// Whatever the watch missed, a list corrects the copy, and the handlers with it.
func TestRelist_LosesNeitherDeletesNorAdds(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newFixture(t, nil)
			h := newHistory()
			_, err := r.Subscribe(h.handle, informer.HandlerOptions{})
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(seed, 0))
			write := func() error { churn(t, r.source, random.Uint64(), random.IntN(8), 4); return nil }
			for range 3 {
				require.NoError(t, write())
				r.executor.Run()
				r.relist(write)
				h.checkState(t, r.Snapshot())
			}
			page, err := r.source.List(t.Context(), backend.ListOptions{})
			require.NoError(t, err)
			require.Equal(t, store.AsObjects[informer.Object[pod]](page.Items), append([]*informer.Object[pod]{}, r.List(nil)...))
		})
	}
}

// No object stays that is gone, though Transform fails for the one that took its place.
func TestRelist_KeepsNothingThatIsGoneThoughTransformFails(t *testing.T) {
	fails := func(p pod) bool { return p.N%3 == 0 }
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newFixture(t, func(cfg *informer.Config[pod]) {
				cfg.Transform = func(p pod) (pod, error) {
					if fails(p) {
						return p, errBad
					}
					return p, nil
				}
			})
			h := newHistory()
			_, err := r.Subscribe(h.handle, informer.HandlerOptions{})
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(seed, 0))
			write := func() error { churn(t, r.source, random.Uint64(), random.IntN(8), 4); return nil }
			for range 5 {
				require.NoError(t, write())
				r.executor.Run()
				r.relist(write)
				h.checkState(t, r.Snapshot())
				page, err := r.source.List(t.Context(), backend.ListOptions{})
				require.NoError(t, err)
				exists := map[string]*informer.Object[pod]{}
				for _, o := range store.AsObjects[informer.Object[pod]](page.Items) {
					exists[o.Key] = o
					if !fails(o.Value) {
						require.Equal(t, o, r.Get(o.Key))
					}
				}
				for _, o := range r.List(nil) {
					require.Contains(t, exists, o.Key)
					require.Equal(t, exists[o.Key].Created, o.Created, "it is the same object")
				}
			}
		})
	}
}

// A relist keeps the objects that have not changed, transformed or not, so it takes
// no memory for them.
func TestRelist_KeepsTheObjectsThatHaveNotChanged(t *testing.T) {
	for name, transform := range map[string]func(pod) (pod, error){
		"as it is":    nil,
		"transformed": func(p pod) (pod, error) { p.Node += "'"; return p, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, func(cfg *informer.Config[pod]) { cfg.Transform = transform })
			r.put(pod{Name: "a"})
			r.put(pod{Name: "b"})
			kept, changed := r.Get("a"), r.Get("b")
			r.relist(func() error { r.write(pod{Name: "b", N: 1}); return nil })
			require.Same(t, kept, r.Get("a"))
			require.NotSame(t, changed, r.Get("b"))
		})
	}
}
