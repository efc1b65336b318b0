package informer_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

func TestClientRow105_IndexersBeforeAndAfterTheStart(t *testing.T) {
	r := newRig(t, func(cfg *informer.Config[pod]) { cfg.Indexers = store.Indexers[pod]{"node": byNode} })
	r.put(pod{Name: "a", Node: "n1"})
	r.put(pod{Name: "b", Node: "n2"})
	even := func(p pod) ([]string, error) { return []string{[]string{"even", "odd"}[p.N%2]}, nil }
	require.NoError(t, r.AddIndexers(store.Indexers[pod]{"parity": even}))
	r.put(pod{Name: "c", Node: "n1", N: 1})

	onNode, err := r.ByIndex("node", "n1")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c"}, keys(onNode))
	evens, err := r.Snapshot().IndexKeys("parity", "even")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, evens)
	values, err := r.Snapshot().IndexValues("parity")
	require.NoError(t, err)
	require.Equal(t, []string{"even", "odd"}, values)

	require.ErrorIs(t, r.AddIndexers(store.Indexers[pod]{"node": byNode}), informer.ErrIndexConflict)
	require.ErrorIs(t, r.AddIndexers(store.Indexers[pod]{"nil": nil}), store.ErrIndexFunc)
	_, err = r.ByIndex("nowhere", "n1")
	require.ErrorIs(t, err, informer.ErrUnknownIndex)
}

func TestClientRow109_112_EverythingRacesTheStart(t *testing.T) {
	s, source := busy(t, nil)
	var racers sync.WaitGroup
	for i := range 8 {
		racers.Go(func() {
			h := newHistorian()
			handle, err := s.Subscribe(h.handle, informer.HandlerOptions{})
			require.NoError(t, err)
			require.NoError(t, s.AddIndexers(store.Indexers[pod]{string(rune('a' + i)): byNode}))
			_, err = source.Add(pod{Name: string(rune('a' + i)), Node: "n"})
			require.NoError(t, err)
			require.NoError(t, handle.Synced(t.Context()))
			require.NoError(t, handle.Remove(t.Context(), informer.Drain))
			h.check(t)
		})
	}
	racers.Wait()
	rev, err := source.Revision(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	found, err := s.ByIndex("c", "n")
	require.NoError(t, err)
	require.Len(t, found, 8)
}

func TestClientRow110_RelistTellsOnlyWhatChanged(t *testing.T) {
	r := newRig(t, nil)
	l, _ := r.subscribe()
	resyncing, _ := r.subscribe(informer.HandlerOptions{Resync: time.Hour})
	r.put(pod{Name: "a"})
	r.put(pod{Name: "b"})
	l.told()
	resyncing.told()
	r.relist(func() error { r.write(pod{Name: "b", N: 1}); return nil })
	require.Equal(t, []string{"MODIFIED b@3→4 relist"}, l.told())
	require.Equal(t, []string{"MODIFIED b@3→4 relist"}, resyncing.told(), "a resync comes when it is due, not with a relist")
}

func TestClientRow111_ErrorsOfTheSourceAreTold(t *testing.T) {
	r := newRig(t, nil)
	r.source.FailList(2, errBad)
	r.pass(time.Minute)
	require.True(t, r.HasSynced())
	r.source.ResetWatches(nil)
	r.pass(time.Minute)
	errs := r.reported()
	require.Len(t, errs, 3)
	var failure *informer.SourceError
	require.ErrorAs(t, errs[0], &failure)
	require.Equal(t, "pods", failure.Informer)
	require.ErrorIs(t, errs[1], errBad)
	require.ErrorIs(t, errs[2], informer.ErrSource, "of a watch that broke, too")
}

func TestClientRow097_113_133_134_TransformIsAppliedOnce(t *testing.T) {
	calls := map[string]int{}
	r := newRig(t, func(cfg *informer.Config[pod]) {
		cfg.Indexers = store.Indexers[pod]{"node": byNode}
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
	require.Equal(t, "n2", found[0].Labels["node"], "selectors go by what the source says")
	r.remove("a")
	require.Equal(t, "n1'", seen[len(seen)-1])
}

func TestPain_TransformCannotLoseTheRevision(t *testing.T) {
	r := newRig(t, func(cfg *informer.Config[pod]) {
		cfg.Transform = func(pod) (pod, error) { return pod{}, nil } // nothing is left to compare
	})
	l, _ := r.subscribe(informer.HandlerOptions{Resync: time.Hour})
	r.put(pod{Name: "a"})
	r.put(pod{Name: "a", N: 1})
	r.relist(func() error { return nil })
	require.Equal(t, []string{"ADDED a@2 initial", "MODIFIED a@2→3 change"}, l.told())
}

func TestClientRow138_PoisonObjectsAreLeftOutAndTheRestGoesOn(t *testing.T) {
	for _, policy := range []informer.ItemErrorPolicy{informer.Skip, informer.Quarantine} {
		t.Run(policy.String(), func(t *testing.T) {
			r := newRig(t, func(cfg *informer.Config[pod]) {
				cfg.ItemErrors = policy
				cfg.Transform = func(p pod) (pod, error) { _, err := byNode(p); return p, err }
			})
			l, _ := r.subscribe()
			r.write(pod{Name: "a", Node: "bad"})
			r.write(pod{Name: "b", Node: "n1"})
			r.executor.Run()
			require.Equal(t, []string{"ADDED b@3 initial"}, l.told())
			r.put(pod{Name: "b", Node: "panic"})
			require.Empty(t, l.told(), "what was there before stays")
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
			require.Equal(t, []string{"ADDED a@5 change"}, l.told())
			require.Len(t, r.Quarantined(), 1, "a is well")
			r.put(pod{Name: "a", Node: "bad"})
			r.remove("a")
			require.Len(t, r.Quarantined(), 1, "a is gone")
			r.relist(func() error { _, err := r.source.Delete("b"); return err })
			require.Empty(t, r.Quarantined(), "b is gone")
		})
	}
}

func TestFailEndsTheInformer(t *testing.T) {
	r := newRig(t, func(cfg *informer.Config[pod]) {
		cfg.ItemErrors = informer.Fail
		cfg.Indexers = store.Indexers[pod]{"node": byNode}
	})
	l, handle := r.subscribe()
	r.put(pod{Name: "a", Node: "n1"})
	rev := r.put(pod{Name: "b", Node: "bad"})
	require.ErrorIs(t, r.Err(), errBad)
	require.ErrorIs(t, r.WaitForRevision(t.Context(), rev), informer.ErrItem)
	require.Equal(t, []string{"a"}, keys(r.List(nil)), "what there was can be read")
	require.Len(t, l.told(), 1)
	require.ErrorIs(t, handle.Err(), informer.ErrClosed)
	_, err := r.Subscribe(l.handle, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrClosed)
}

func TestPain_IndexFuncErrorCostsOneIndexEntry(t *testing.T) {
	r := newRig(t, func(cfg *informer.Config[pod]) {
		cfg.Indexers = store.Indexers[pod]{"node": byNode}
		cfg.ItemErrors = informer.Quarantine
	})
	l, _ := r.subscribe()
	for name, node := range map[string]string{"a": "n1", "b": "bad", "c": "panic"} {
		r.put(pod{Name: name, Node: node})
	}
	require.Len(t, l.told(), 3)
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

	require.NoError(t, r.AddIndexers(store.Indexers[pod]{"again": byNode}))
	require.Len(t, r.reported(), 1, "of c, in the new index")
}

func TestClientRow139_141_HandlersSeeTheStoreThatTheyAreToldOf(t *testing.T) {
	r := newRig(t, nil)
	l := &log{before: func(n informer.Notification[pod]) {
		state := r.Snapshot()
		require.GreaterOrEqual(t, state.Revision(), n.Object.Revision)
		if n.Type == store.Deleted {
			require.Nil(t, state.Get(n.Key()))
			return
		}
		require.Same(t, n.Object, state.Get(n.Key()))
	}}
	r.subscribeLog(l)
	for _, name := range []string{"a", "b", "c"} {
		rev := r.put(pod{Name: name})
		require.Equal(t, rev, r.Revision())
	}
	l.told()
	r.relist(func() error {
		_, err := r.source.Delete("b")
		r.write(pod{Name: "a", N: 1})
		r.write(pod{Name: "d"})
		return err
	})
	require.Equal(t, []string{"DELETED b@7 relist stale", "MODIFIED a@2→6 relist", "ADDED d@7 relist"}, l.told())
	require.Empty(t, r.reported()[1:], "but for the watch that expired")
}

// Neither a relist nor a deletion that was seen turns one object into another.
func TestPain_DeleteAndRecreateIsNoUpdate(t *testing.T) {
	r := newRig(t, nil)
	l, _ := r.subscribe()
	r.put(pod{Name: "a"})
	l.told()
	r.relist(func() error {
		_, err := r.source.Delete("a")
		r.write(pod{Name: "a", N: 1})
		return err
	})
	require.Equal(t, []string{"DELETED a@3 relist stale", "ADDED a@4 relist"}, l.told())
}

func TestIdentityOfTheUsersOwn(t *testing.T) {
	identity := func(o *informer.Object[pod]) string {
		if o.Value.N == 13 {
			panic(errBad)
		}
		return o.Value.Node
	}
	r := newRig(t, func(cfg *informer.Config[pod]) { cfg.Identity = identity })
	l, _ := r.subscribe()
	r.put(pod{Name: "a", Node: "uid-1"})
	r.put(pod{Name: "a", Node: "uid-1", N: 1})
	r.put(pod{Name: "a", Node: "uid-2"})
	require.Equal(t, []string{
		"ADDED a@2 initial", "MODIFIED a@2→3 change", "DELETED a@3 change stale", "ADDED a@4 change",
	}, l.told())
	r.put(pod{Name: "a", Node: "uid-3", N: 13})
	require.Equal(t, []string{"MODIFIED a@4→5 change"}, l.told(), "without it, the revision of the creation counts")
	require.ErrorContains(t, r.reported()[0], "Identity")
}

func TestClientRow160_ListsBySelector(t *testing.T) {
	r := newRig(t, nil)
	for name, node := range map[string]string{"ns/a": "n1", "ns/b": "n2", "ns-2/c": "n1", "nsx": "n1"} {
		r.put(pod{Name: name, Node: node})
	}
	onN1 := labels.SelectorFromSet(labels.Set{"node": "n1"})
	require.Equal(t, []string{"ns-2/c", "ns/a", "nsx"}, keys(r.List(onN1)))
	require.Len(t, r.List(nil), 4)
	require.Len(t, r.List(labels.Everything()), 4)
	require.Empty(t, r.List(labels.Nothing()))

	ns := r.Lister("ns")
	require.Equal(t, []string{"ns/a", "ns/b"}, keys(ns.List(nil)))
	require.Equal(t, []string{"ns/a"}, keys(ns.List(onN1)))
	require.NotNil(t, ns.Get("ns/a"))
	require.Nil(t, ns.Get("nsx"))
	count := 0
	for range ns.All() {
		count++
		break
	}
	require.Equal(t, 1, count)
}

func TestPrefixMirrorsAPart(t *testing.T) {
	r := newRig(t, func(cfg *informer.Config[pod]) { cfg.Prefix = "ns" })
	r.put(pod{Name: "other/a"})
	rev := r.put(pod{Name: "ns/a"})
	require.NoError(t, r.WaitForRevision(t.Context(), rev))
	require.Equal(t, []string{"ns/a"}, keys(r.List(nil)))
	last := r.put(pod{Name: "other/b"})
	require.NoError(t, r.WaitForRevision(t.Context(), last), "it knows that nothing happened up to there")
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	source := newRig(t, nil).source
	for field, cfg := range map[string]informer.Config[pod]{
		"Source":     {},
		"ItemErrors": {Source: engine.SourceOf[pod](source), ItemErrors: 9},
		"Prefix":     {Source: engine.SourceOf[pod](source), Prefix: "a//b"},
		"Indexers":   {Source: engine.SourceOf[pod](source), Indexers: store.Indexers[pod]{"nil": nil}},
		"Backoff.Initial": func() informer.Config[pod] {
			c := informer.Config[pod]{Source: engine.SourceOf[pod](source)}
			c.Backoff.Initial = -1
			return c
		}(),
	} {
		_, err := informer.New(cfg)
		require.ErrorIs(t, err, informer.ErrConfig)
		require.ErrorContains(t, err, field)
	}
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	require.NoError(t, host.Close())
	_, err = informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host})
	require.ErrorIs(t, err, informer.ErrClosed)
}

// Only legal transitions, whatever happens to the source.
func TestClientRow130_131_HistoriesThroughFaults(t *testing.T) {
	s, source := busy(t, func(cfg *informer.Config[pod]) { cfg.Backoff = quick })
	var histories []*historian
	var handles []*informer.Registration
	for i := range 12 {
		h := newHistorian()
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
