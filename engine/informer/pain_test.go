package informer_test

import (
	"context"
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

// Reads go on while a change is being taken in, and see the state before it.
func TestPain_ReadersDoNotWaitForTheWriter(t *testing.T) {
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
func TestPain_SnapshotsAreOfOneRevision(t *testing.T) {
	s, source := busy(t, nil)
	require.NoError(t, s.Synced(t.Context()))
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

// Handlers may be added at any time and from anywhere, and start with a state
// that the changes they are told of join.
func TestPain_HandlersAddedAtAnyTimeAndFromHandlers(t *testing.T) {
	r := newRig(t, nil)
	r.source.FailList(1, nil)
	inner := newHistorian()
	var added *informer.Registration
	outer := &log{before: func(n informer.Notification[pod]) {
		if added == nil {
			var err error
			added, err = r.Subscribe(inner.handle, informer.HandlerOptions{})
			require.NoError(t, err)
		}
	}}
	r.subscribeLog(outer)
	r.put(pod{Name: "a"})
	r.pass(time.Minute)
	r.put(pod{Name: "b"})
	r.remove("a")
	require.NoError(t, added.Synced(t.Context()))
	inner.checkState(t, r.Snapshot())
}

// Whatever happens unseen, a list brings the state right and handlers with it.
func TestPain_RelistLosesNeitherDeletesNorAdds(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRig(t, nil)
			h := newHistorian()
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

// A list brings no second copy of what there is: the objects stay the same ones,
// transformed or not.
func TestPain_RelistTakesNoMemoryForWhatHasNotChanged(t *testing.T) {
	for name, transform := range map[string]func(pod) (pod, error){
		"as it is":    nil,
		"transformed": func(p pod) (pod, error) { p.Node += "'"; return p, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(cfg *informer.Config[pod]) { cfg.Transform = transform })
			r.put(pod{Name: "a"})
			r.put(pod{Name: "b"})
			kept, changed := r.Get("a"), r.Get("b")
			r.relist(func() error { r.write(pod{Name: "b", N: 1}); return nil })
			require.Same(t, kept, r.Get("a"))
			require.NotSame(t, changed, r.Get("b"))
		})
	}
}

// An engine is a source, on a host of its own or on the same.
func TestEngineIsASource(t *testing.T) {
	e := enginetest.New(t, podConfig())
	s, err := informer.New(informer.Config[pod]{Source: e.Engine().Source(), Host: e.Host()})
	require.NoError(t, err)
	h := newHistorian()
	handle, err := s.Subscribe(h.handle, informer.HandlerOptions{})
	require.NoError(t, err)
	var last store.Revision
	for i := range 2000 {
		last = e.Put(pod{Name: fmt.Sprint("p", i%10), N: i})
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

func TestEngineIsASourceDeterministically(t *testing.T) {
	var told [2][]string
	for i := range told {
		e := enginetest.New(t, podConfig(), enginetest.Deterministic(5))
		s, err := informer.New(informer.Config[pod]{Source: e.Engine().Source(), Host: e.Host()})
		require.NoError(t, err)
		var logs [3]log
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
			told[i] = append(told[i], logs[j].told()...)
		}
		require.NoError(t, s.Close())
	}
	require.NotEmpty(t, told[0])
	require.Equal(t, told[0], told[1], "one seed is one execution")
}

func TestEngineThatIsClosedIsNoSourceAnyMore(t *testing.T) {
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
	require.NotNil(t, s.Get("a"), "what was mirrored can be read")
	require.NoError(t, s.Close())
	enginetest.CheckLeaks(t, host)
	require.NoError(t, host.Close())
}
