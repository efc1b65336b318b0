package informer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/cache"
)

func TestStats_CountWhatTheInformerHas(t *testing.T) {
	r := newFixture(t, nil)
	require.Zero(t, r.Stats())
	r.put(pod{Name: "a"})
	_, handle := r.subscribe()
	last := r.put(pod{Name: "b"})
	stats := r.Stats()
	require.Equal(t, 1, stats.Handlers)
	require.Equal(t, uint64(1), stats.Notifications, "a was in the first list")
	require.Equal(t, 2, stats.Objects)
	require.Equal(t, last, stats.Revision)
	require.Equal(t, uint64(1), stats.Source.Lists)
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	require.Zero(t, r.Stats().Handlers)
}

func TestIndexers_BeforeAndAfterTheStart(t *testing.T) {
	r := newFixture(t, func(cfg *informer.Config[pod]) { cfg.Indexers = cache.Indexers[pod]{"node": byNode} })
	r.put(pod{Name: "a", Node: "n1"})
	r.put(pod{Name: "b", Node: "n2"})
	even := func(p pod) ([]string, error) { return []string{[]string{"even", "odd"}[p.N%2]}, nil }
	require.NoError(t, r.AddIndexers(cache.Indexers[pod]{"parity": even}))
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

	require.ErrorIs(t, r.AddIndexers(cache.Indexers[pod]{"node": byNode}), informer.ErrIndexConflict)
	require.ErrorIs(t, r.AddIndexers(cache.Indexers[pod]{"nil": nil}), cache.ErrNoIndexFunc)
	_, err = r.ByIndex("nowhere", "n1")
	require.ErrorIs(t, err, informer.ErrUnknownIndex)
}

// An index over many objects may take long. Meanwhile the informer's changes wait, but not those of
// another on the same host, of which they hold no worker.
func TestAddIndexers_HoldsNoWorker(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{Workers: 1})
	require.NoError(t, err)
	source := enginetest.NewSource(podConfig())
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once, release sync.Once
	t.Cleanup(func() {
		release.Do(func() { close(goOn) })
		require.NoError(t, source.Close())
		require.NoError(t, host.Close())
	})
	start := func() *informer.SharedInformer[pod] {
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host})
		require.NoError(t, err)
		return s
	}
	indexed, other := start(), start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rev, err := source.Add(pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, indexed.WaitForRevision(ctx, rev))

	returned := make(chan error, 1)
	go func() {
		returned <- indexed.AddIndexers(cache.Indexers[pod]{"node": func(p pod) ([]string, error) {
			once.Do(func() { close(begun) })
			<-goOn
			return byNode(p)
		}})
	}()
	<-begun
	for i := range 100 {
		rev, err = source.Modify(pod{Name: "a", Node: "n1", N: i})
		require.NoError(t, err)
		require.NoError(t, other.WaitForRevision(ctx, rev))
	}
	require.Less(t, indexed.Revision(), rev)
	require.Less(t, indexed.Stats().Source.Events, uint64(20), "what waits for it stays at the source")
	release.Do(func() { close(goOn) })
	require.NoError(t, <-returned)
	require.NoError(t, indexed.WaitForRevision(ctx, rev))
	found, err := indexed.ByIndex("node", "n1")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, keys(found))
	require.NoError(t, indexed.Close())
	require.NoError(t, other.Close())
}

func TestInformer_CallsRaceTheStart(t *testing.T) {
	s, source := busy(t, nil)
	var racers sync.WaitGroup
	for i := range 8 {
		racers.Go(func() {
			name, h := string(rune('a'+i)), newHistory()
			handle, err := s.Subscribe(h.handle, informer.HandlerOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			indexed := s.AddIndexers(cache.Indexers[pod]{name: byNode})
			_, added := source.Add(pod{Name: name, Node: "n"})
			synced, removed := handle.WaitSynced(t.Context()), handle.Remove(t.Context(), informer.Drain)
			if err := errors.Join(indexed, added, synced, removed); err != nil {
				t.Error(err)
			}
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

func TestOnError_GetsErrorsOfTheSource(t *testing.T) {
	r := newFixture(t, nil)
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
	require.EqualError(t, errs[0], "informer pods: source failed: bad node")
	require.ErrorIs(t, errs[1], errBad)
	require.ErrorIs(t, errs[2], informer.ErrSource, "of a watch that broke, too")
}

func TestList_BySelectorAndPrefix(t *testing.T) {
	r := newFixture(t, nil)
	for name, node := range map[string]string{"ns/a": "n1", "ns/b": "n2", "ns-2/c": "n1", "nsx": "n1", "a/b/c": "n2", "a/b-c": "n2", "a/b": "n2"} {
		r.put(pod{Name: name, Node: node})
	}
	onN1 := labels.SelectorFromSet(labels.Set{"node": "n1"})
	require.Equal(t, []string{"ns-2/c", "ns/a", "nsx"}, keys(r.List(onN1)))
	require.Len(t, r.List(nil), 7)
	require.Len(t, r.List(labels.Everything()), 7)
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

	require.Equal(t, []string{"a/b", "a/b/c"}, keys(r.Lister("a/b").List(nil)), "the key itself, too")
	require.Equal(t, []string{"a/b/c"}, keys(r.Lister("a/b/").List(nil)))
	require.Empty(t, r.Lister("b").List(nil))
	for o := range r.Snapshot().Under("a/b") {
		require.Equal(t, "a/b", o.Key)
		break
	}
}

func TestPrefix_FollowsAPart(t *testing.T) {
	r := newFixture(t, func(cfg *informer.Config[pod]) { cfg.Prefix = "ns" })
	r.put(pod{Name: "other/a"})
	rev := r.put(pod{Name: "ns/a"})
	require.NoError(t, r.WaitForRevision(t.Context(), rev))
	require.Equal(t, []string{"ns/a"}, keys(r.List(nil)))
	last := r.put(pod{Name: "other/b"})
	require.NoError(t, r.WaitForRevision(t.Context(), last), "nothing under the prefix happened up to there")
}

// Source of an engine of another type does not compile. SourceOf can wrap one, and New
// refuses it.
func TestNew_RefusesASourceOfAnotherType(t *testing.T) {
	others := enginetest.New(t, engine.Config[string]{Key: func(s string) string { return s }})
	_, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](others.Engine().Source())})
	require.ErrorIs(t, err, informer.ErrConfig)
	require.ErrorContains(t, err, "Source holds objects of string, not of informer_test.pod")
}

func TestNew_RefusedConfigurationsNameTheField(t *testing.T) {
	source := newFixture(t, nil).source
	for field, cfg := range map[string]informer.Config[pod]{
		"Source":     {},
		"Host":       {Source: engine.SourceOf[pod](source), Host: &engine.Host{}},
		"ItemErrors": {Source: engine.SourceOf[pod](source), ItemErrors: 9},
		"Prefix":     {Source: engine.SourceOf[pod](source), Prefix: "a//b"},
		"Indexers":   {Source: engine.SourceOf[pod](source), Indexers: cache.Indexers[pod]{"nil": nil}},
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

// Reads go on while the informer applies a change, and see the state before it.
func TestSnapshot_ReadersDoNotWaitForTheWriter(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s, source := busy(t, func(cfg *informer.Config[pod]) {
		cfg.Transform = func(p pod) (pod, error) {
			if p.N == 1 {
				close(entered)
				<-leave
			}
			return p, nil
		}
	})
	rev, err := source.Add(pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	_, err = source.Modify(pod{Name: "a", N: 1})
	require.NoError(t, err)
	<-entered
	require.Len(t, s.List(nil), 1)
	require.Equal(t, rev, s.Get("a").Revision)
	close(leave)
	require.NoError(t, s.WaitForRevision(t.Context(), rev+1))
}

// Every snapshot is the state that the source had at its revision.
func TestSnapshot_IsOfOneRevision(t *testing.T) {
	s, source := busy(t, nil)
	require.NoError(t, s.WaitSynced(t.Context()))
	var writer sync.WaitGroup
	writer.Go(func() { churn(t, source, 9, 3000, 30) })
	seen := map[store.Revision]bool{}
	for range 200 {
		snapshot := s.Snapshot()
		if !seen[snapshot.Revision()] {
			seen[snapshot.Revision()] = true
			page, err := source.List(t.Context(), backend.ListOptions{Revision: snapshot.Revision()})
			require.NoError(t, err)
			require.Equal(t, store.AsObjects[informer.Object[pod]](page.Items), append([]*informer.Object[pod]{}, snapshot.List(nil)...))
		}
	}
	writer.Wait()
}

// An engine is a source, on a host of its own or on the same.
func TestEngine_IsASource(t *testing.T) {
	e := enginetest.New(t, podConfig())
	s, err := informer.New(informer.Config[pod]{Source: e.Engine().Source(), Host: e.Host()})
	require.NoError(t, err)
	h := newHistory()
	handle, err := s.Subscribe(h.handle, informer.HandlerOptions{})
	require.NoError(t, err)
	var last store.Revision
	for i := range 2000 {
		last = e.Put(pod{Name: fmt.Sprint("p", i%10), N: i}).Revision
		if i%7 == 0 {
			last = e.Delete(fmt.Sprint("p", i%10)).Revision
		}
	}
	require.NoError(t, s.WaitForRevision(t.Context(), last))
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	h.checkState(t, s.Snapshot())
	require.Len(t, e.List(engine.ListOptions{}).Items, s.Snapshot().Len())
	require.NoError(t, s.Close())
}

func TestEngine_IsASourceDeterministically(t *testing.T) {
	var told [2][]string
	for i := range told {
		e := enginetest.NewWith(t, podConfig(), enginetest.Deterministic(5))
		s, err := informer.New(informer.Config[pod]{Source: e.Engine().Source(), Host: e.Host()})
		require.NoError(t, err)
		var logs [3]recorder
		for j := range logs {
			_, err := s.Subscribe(logs[j].handle, informer.HandlerOptions{Buffer: 1 + j})
			require.NoError(t, err)
		}
		for j := range 50 {
			e.Put(pod{Name: fmt.Sprint("p", j%7), N: j})
		}
		e.Advance(time.Hour)
		require.Equal(t, e.Engine().Revision(), s.Revision())
		for j := range logs {
			told[i] = append(told[i], logs[j].recorded()...)
		}
		require.NoError(t, s.Close())
	}
	require.NotEmpty(t, told[0])
	require.Equal(t, told[0], told[1], "one seed is one execution")
}

func TestEngine_ClosedEndsTheInformer(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	cfg := podConfig()
	cfg.Host = host
	e, err := engine.New(cfg)
	require.NoError(t, err)
	s, err := informer.New(informer.Config[pod]{Source: e.Source(), Host: host, Backoff: quick})
	require.NoError(t, err)
	created, err := e.Create(t.Context(), pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), created.Revision))
	require.NoError(t, e.Close())
	require.ErrorIs(t, s.WaitForRevision(context.Background(), created.Revision+1), engine.ErrEngineClosed)
	require.ErrorIs(t, s.Err(), informer.ErrSource)
	require.NotNil(t, s.Get("a"), "the copy can be read")
	require.NoError(t, s.Close())
	enginetest.CheckLeaks(t, host)
	require.NoError(t, host.Close())
}
