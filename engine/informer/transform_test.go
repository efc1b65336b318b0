package informer_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/cache"
	"github.com/watchmill/watchmill/usercode"
)

func TestTransform_IsAppliedOnce(t *testing.T) {
	calls := map[string]int{}
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		cfg.Indexers = cache.Indexers[pod]{"node": byNode}
		cfg.Transform = func(p pod) (pod, error) {
			calls[p.Name]++
			p.Node += "'"
			return p, nil
		}
	})
	var seen []string
	_, err := r.Subscribe(func(n informer.Notification[pod]) { seen = append(seen, n.Object.Value.Node) },
		informer.HandlerOptions{Resync: 20 * time.Second})
	require.NoError(t, err)
	r.put(pod{Name: "a", Node: "n1"})
	r.relist(func() error { r.write(pod{Name: "b", Node: "n2"}); return nil })
	r.relist(func() error { return nil })
	require.Equal(t, map[string]int{"a": 1, "b": 1}, calls, "neither a relist nor a resync transforms again")
	require.Contains(t, seen, "n1'")
	require.NotContains(t, seen, "n1")
	found, err := r.ByIndex("node", "n2'")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "n2", found[0].Labels.Get("node"), "selectors go by what the source says")
	r.remove("a")
	require.Equal(t, "n1'", seen[len(seen)-1])
}

// copyingSource is a source that does not keep the objects that it lists.
type copyingSource struct {
	*enginetest.Source[pod]
	listed []weak.Pointer[informer.Object[pod]]
}

func (s *copyingSource) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	page, err := s.Source.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	copied := *page
	copied.Items = make([]*store.Object, len(page.Items))
	for i, o := range page.Items {
		object := *store.As[informer.Object[pod]](o)
		s.listed = append(s.listed, weak.Make(&object))
		copied.Items[i] = store.Header(&object)
	}
	return &copied, nil
}

// A Transform that drops fields is to save their memory.
func TestTransform_OfAListLeavesNothingOfWhatWasListed(t *testing.T) {
	var source *copyingSource
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		source = &copyingSource{Source: cfg.Source.ListerWatcher.(*enginetest.Source[pod])}
		cfg.Source = engine.SourceOf[pod](source)
		cfg.Transform = func(p pod) (pod, error) { return pod{Name: p.Name}, nil }
	})
	for _, name := range []string{"a", "b", "c"} {
		r.write(pod{Name: name, Node: "n1"})
	}
	r.executor.Run()
	require.Equal(t, 3, r.Snapshot().Len())
	require.Len(t, source.listed, 3)
	runtime.GC()
	for _, o := range source.listed {
		require.Nil(t, o.Value())
	}
}

func TestTransform_CannotLoseTheRevision(t *testing.T) {
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		cfg.Transform = func(pod) (pod, error) { return pod{}, nil } // nothing is left to compare
	})
	l, _ := r.subscribe(informer.HandlerOptions{Resync: time.Hour})
	r.put(pod{Name: "a"})
	r.put(pod{Name: "a", N: 1})
	r.relist(func() error { return nil })
	require.Equal(t, []string{"ADDED a@2 initial", "MODIFIED a@2→3 change"}, l.recorded())
}

func TestTransform_FailuresAreLeftOutAndTheRestGoesOn(t *testing.T) {
	for _, policy := range []informer.ItemErrorPolicy{informer.Skip, informer.Quarantine} {
		t.Run(policy.String(), func(t *testing.T) {
			r := newFixture(t, func(cfg *informer.Config[pod]) {
				cfg.ItemErrors = policy
				cfg.Transform = func(p pod) (pod, error) { _, err := byNode(p); return p, err }
			})
			l, _ := r.subscribe()
			r.write(pod{Name: "a", Node: "bad"})
			r.write(pod{Name: "b", Node: "n1"})
			r.executor.Run()
			require.Equal(t, []string{"ADDED b@3 initial"}, l.recorded())
			r.put(pod{Name: "b", Node: "panic"})
			require.Empty(t, l.recorded(), "the state before stays")
			require.Equal(t, "n1", r.Get("b").Value.Node)

			errs := r.reported()
			require.Len(t, errs, 2)
			var failure *informer.ItemError
			require.ErrorAs(t, errs[1], &failure)
			require.Equal(t, "Transform", failure.Func)
			require.Equal(t, "b", failure.Key)
			require.ErrorIs(t, failure, informer.ErrItem)
			require.ErrorIs(t, failure, errBad)

			ill := r.Quarantined()
			if policy == informer.Skip {
				require.Empty(t, ill)
				return
			}
			require.Len(t, ill, 2)
			require.Equal(t, "bad", ill[0].Object.Value.Node)
			require.ErrorIs(t, ill[0].Err, errBad)
			r.put(pod{Name: "a", Node: "n2"})
			require.Equal(t, []string{"ADDED a@5 change"}, l.recorded())
			require.Len(t, r.Quarantined(), 1, "a is well")
			r.put(pod{Name: "a", Node: "bad"})
			r.remove("a")
			require.Len(t, r.Quarantined(), 1, "a is gone")
			r.relist(func() error { _, err := r.source.Delete("b"); return err })
			require.Empty(t, r.Quarantined(), "b is gone")
		})
	}
}

// The state before is of an object that is gone, as a watch would have said.
func TestTransform_FailsForAnObjectThatARelistFindsCreatedAgain(t *testing.T) {
	for _, policy := range []informer.ItemErrorPolicy{informer.Skip, informer.Quarantine} {
		t.Run(policy.String(), func(t *testing.T) {
			r := newFixture(t, func(cfg *informer.Config[pod]) {
				cfg.ItemErrors = policy
				cfg.Transform = func(p pod) (pod, error) { _, err := byNode(p); return p, err }
			})
			l, _ := r.subscribe()
			r.put(pod{Name: "a", Node: "n1"})
			r.put(pod{Name: "b", Node: "n1"})
			l.recorded()
			r.relist(func() error {
				r.write(pod{Name: "b", Node: "bad"})
				_, err := r.source.Delete("a")
				r.write(pod{Name: "a", Node: "bad"})
				return err
			})
			require.Equal(t, []string{"DELETED a@5 relist stale"}, l.recorded())
			require.Equal(t, []string{"b"}, keys(r.List(nil)), "which is the same object")
			r.put(pod{Name: "a", Node: "n2"})
			require.Equal(t, []string{"ADDED a@7 change"}, l.recorded())
		})
	}
}

// Identity needs the value that Transform has failed to make, so it is not known whether the object is
// another one, and the old state stays.
func TestTransform_FailsForAnObjectThatOnlyIdentityKnows(t *testing.T) {
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		cfg.Identity = func(o *informer.Object[pod]) string { return o.Value.Name }
		cfg.Transform = func(p pod) (pod, error) { _, err := byNode(p); return p, err }
	})
	l, _ := r.subscribe()
	r.put(pod{Name: "a", Node: "n1"})
	l.recorded()
	r.relist(func() error {
		_, err := r.source.Delete("a")
		r.write(pod{Name: "a", Node: "bad"})
		return err
	})
	require.Empty(t, l.recorded())
	require.Equal(t, "n1", r.Get("a").Value.Node)
}

// The state before is of storage that is gone.
func TestTransform_FailsForAnObjectOfStorageThatTookTheOldOnesPlace(t *testing.T) {
	identified, fails := &restorable{id: "first"}, false
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		identified.ListerWatcher = cfg.Source.ListerWatcher
		cfg.Source = engine.SourceOf[pod](identified)
		cfg.Transform = func(p pod) (pod, error) {
			if fails {
				return p, errBad
			}
			return p, nil
		}
	})
	l, _ := r.subscribe()
	r.put(pod{Name: "a"})
	l.recorded()
	identified.id, fails = "second", true
	r.relist(func() error { return nil })
	require.Equal(t, []string{"DELETED a@2 relist stale"}, l.recorded())
	require.Empty(t, r.List(nil))
	fails = false
	r.relist(func() error { return nil })
	require.Equal(t, []string{"ADDED a@2 relist"}, l.recorded(), "it was not taken for unchanged")
}

func TestItemErrors_FailEndsTheInformer(t *testing.T) {
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		cfg.ItemErrors = informer.Fail
		cfg.Indexers = cache.Indexers[pod]{"node": byNode}
	})
	l, handle := r.subscribe()
	r.put(pod{Name: "a", Node: "n1"})
	rev := r.put(pod{Name: "b", Node: "bad"})
	require.ErrorIs(t, r.Err(), errBad)
	require.ErrorIs(t, r.WaitForRevision(t.Context(), rev), informer.ErrItem)
	require.Equal(t, []string{"a"}, keys(r.List(nil)), "the copy can be read")
	require.Len(t, l.recorded(), 1)
	require.ErrorIs(t, handle.Err(), informer.ErrClosed)
	_, err := r.Subscribe(l.handle, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrClosed)
}

// addIndexersBeside calls AddIndexers on another goroutine, which sends what it returns. The call is
// likely to wait by then for the lock that a Transform has.
func addIndexersBeside(s *informer.SharedInformer[pod], returned chan<- error) {
	calling := make(chan struct{})
	go func() {
		close(calling)
		returned <- s.AddIndexers(cache.Indexers[pod]{"node": byNode})
	}()
	<-calling
	for range 100 {
		runtime.Gosched()
	}
}

// A call of AddIndexers that waits while a Transform fails must not publish what was applied
// before.
func TestItemErrors_FailPublishesNoPartOfACommit(t *testing.T) {
	for range 50 {
		returned := make(chan error, 1)
		var s *informer.SharedInformer[pod]
		made := make(chan struct{})
		s, _ = busy(t, func(cfg *informer.Config[pod]) {
			cfg.ItemErrors = informer.Fail
			cfg.Transform = func(p pod) (pod, error) {
				if p.Name != "b" {
					return p, nil
				}
				<-made
				addIndexersBeside(s, returned)
				return p, errBad
			}
			for _, name := range []string{"a", "b"} {
				_, err := cfg.Source.ListerWatcher.(*enginetest.Source[pod]).Add(pod{Name: name})
				require.NoError(t, err)
			}
		})
		close(made)
		require.ErrorIs(t, <-returned, informer.ErrClosed)
		require.ErrorIs(t, s.WaitSynced(t.Context()), informer.ErrItem)
		require.Empty(t, s.List(nil))
	}
}

func TestIndexers_ErrorCostsOneIndexEntry(t *testing.T) {
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		cfg.Indexers = cache.Indexers[pod]{"node": byNode}
		cfg.ItemErrors = informer.Quarantine
	})
	l, _ := r.subscribe()
	for name, node := range map[string]string{"a": "n1", "b": "bad", "c": "panic"} {
		r.put(pod{Name: name, Node: node})
	}
	require.Len(t, l.recorded(), 3)
	values, err := r.Snapshot().IndexValues("node")
	require.NoError(t, err)
	require.Equal(t, []string{"n1"}, values)
	require.Equal(t, []string{"a", "b", "c"}, keys(r.List(nil)))
	errs := r.reported()
	require.Len(t, errs, 2)
	require.ErrorContains(t, errs[0], "Indexers[node]")
	require.Len(t, r.Quarantined(), 2)
	r.put(pod{Name: "b", Node: "n2"})
	require.Len(t, r.Quarantined(), 1)

	require.NoError(t, r.AddIndexers(cache.Indexers[pod]{"again": byNode}))
	require.Len(t, r.reported(), 1, "of c, in the new index")
}

// The stored state of an object may be older than the one in quarantine.
func TestAddIndexers_KeepsTheNewestStateInQuarantine(t *testing.T) {
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		cfg.ItemErrors = informer.Quarantine
		cfg.Transform = func(p pod) (pod, error) {
			if p.N > 0 {
				return p, errors.New("newer")
			}
			p.Node = "bad"
			return p, nil
		}
	})
	r.put(pod{Name: "a", Node: "n1"})
	r.put(pod{Name: "b", Node: "n1"})
	newest := r.put(pod{Name: "a", Node: "n2", N: 1})
	require.Len(t, r.reported(), 1)
	require.NoError(t, r.AddIndexers(cache.Indexers[pod]{"node": byNode}))
	require.Len(t, r.reported(), 2, "of the stored states")
	ill := r.Quarantined()
	require.Len(t, ill, 2)
	require.Equal(t, newest, ill[0].Object.Revision)
	require.Equal(t, "n2", ill[0].Object.Value.Node, "the source's")
	require.ErrorContains(t, ill[0].Err, "newer")
	require.Equal(t, "bad", ill[1].Object.Value.Node, "as Transform has left it")
	require.ErrorIs(t, ill[1].Err, errBad)
}

// A Transform that ends the goroutine ends the informer, which says so, and leaves its copy
// unlocked: a call that waits for the lock meanwhile returns.
func TestTransform_ThatEndsTheGoroutineLeavesNoLock(t *testing.T) {
	returned := make(chan error, 1)
	var s *informer.SharedInformer[pod]
	s, source := busy(t, func(cfg *informer.Config[pod]) {
		cfg.Transform = func(pod) (pod, error) {
			addIndexersBeside(s, returned)
			runtime.Goexit()
			return pod{}, nil
		}
	})
	handle, err := s.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
	require.NoError(t, err)
	rev, err := source.Add(pod{Name: "a"})
	require.NoError(t, err)
	if err := <-returned; err != nil {
		require.ErrorIs(t, err, informer.ErrClosed)
	}
	err = s.WaitForRevision(t.Context(), rev)
	require.ErrorIs(t, err, informer.ErrClosed)
	require.ErrorIs(t, err, usercode.ErrGoexit)
	var failure *engine.Failure
	require.ErrorAs(t, s.Err(), &failure)
	<-handle.Done()
	require.ErrorIs(t, handle.Err(), usercode.ErrGoexit)
}
