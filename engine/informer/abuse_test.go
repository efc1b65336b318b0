package informer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

// historian checks that what a handler is told is a history: of each key, an
// addition, updates that join each other, at most one deletion, then all over
// again, at revisions that grow.
type historian struct {
	known map[string]*informer.Object[pod]
	last  map[string]store.Revision
	wrong atomic.Pointer[string]
	ended atomic.Bool
	calls atomic.Int64
}

func newHistorian() *historian {
	return &historian{known: map[string]*informer.Object[pod]{}, last: map[string]store.Revision{}}
}

func (h *historian) handle(n informer.Notification[pod]) {
	h.calls.Add(1)
	if h.ended.Load() {
		h.fail("told %v after its end", n)
	}
	known := h.known[n.Key()]
	switch {
	case n.Type == store.Added && known != nil:
		h.fail("%v, but it has %d", n, known.Revision)
	case n.Type != store.Added && known != n.Old:
		h.fail("%v of %v, but it has %v", n, n.Old, known)
	case n.Cause != informer.Resync && n.Object.Revision < h.last[n.Key()]:
		h.fail("%v after revision %d", n, h.last[n.Key()])
	case n.Type == store.Modified && n.Old.Created != n.Object.Created:
		h.fail("%v turns one object into another", n)
	}
	h.last[n.Key()] = n.Object.Revision
	if h.known[n.Key()] = n.Object; n.Type == store.Deleted {
		delete(h.known, n.Key())
	}
}

func (h *historian) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.wrong.CompareAndSwap(nil, &text)
}

func (h *historian) check(t *testing.T) {
	t.Helper()
	if wrong := h.wrong.Load(); wrong != nil {
		t.Error(*wrong)
	}
}

// checkState demands that what the handler was told adds up to the state.
func (h *historian) checkState(t *testing.T, state informer.Snapshot[pod]) {
	t.Helper()
	h.check(t)
	require.Len(t, h.known, state.Len())
	for object := range state.All() {
		require.Same(t, object, h.known[object.Key])
	}
}

// churn writes n times at random to one of keys objects.
func churn(t *testing.T, source *enginetest.Source[pod], seed uint64, n, keys int) (last store.Revision) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		p := pod{Name: fmt.Sprintf("p%d", random.IntN(keys)), N: i + 1}
		_, err := source.Get(context.Background(), p.Name)
		switch {
		case err != nil:
			last, err = source.Add(p)
		case random.IntN(4) == 0:
			last, err = source.Delete(p.Name)
		default:
			last, err = source.Modify(p)
		}
		if err != nil {
			t.Error(err)
		}
	}
	return last
}

// busy is an informer on a real host over a source of its own.
func busy(t *testing.T, configure func(*informer.Config[pod])) (*informer.SharedInformer[pod], *enginetest.Source[pod]) {
	t.Helper()
	source := enginetest.NewSource(podConfig())
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	cfg := informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host, Name: "pods"}
	if configure != nil {
		configure(&cfg)
	}
	s, err := informer.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, source.Close())
		enginetest.CheckLeaks(t, host)
		require.NoError(t, host.Close())
	})
	return s, source
}

func TestClientRow118_HandlersComeAndGoDuringManyEvents(t *testing.T) {
	events, handlers := 100_000, 100
	if testing.Short() {
		events = 10_000
	}
	s, source := busy(t, nil)
	stays := newHistorian()
	stayer, err := s.Subscribe(stays.handle, informer.HandlerOptions{})
	require.NoError(t, err)

	var adders, writer sync.WaitGroup
	done := make(chan struct{})
	for i := range handlers {
		adders.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for {
				select {
				case <-done:
					return
				default:
				}
				comeAndGo(t, s, random)
			}
		})
	}
	var last store.Revision
	writer.Go(func() {
		last = churn(t, source, 1, events, 50)
		close(done)
	})
	writer.Wait()
	adders.Wait()
	require.NoError(t, s.WaitForRevision(t.Context(), last))
	require.NoError(t, stayer.Remove(t.Context(), informer.Drain))
	stays.checkState(t, s.Snapshot())
}

// comeAndGo adds a handler of some kind, and removes it somehow.
func comeAndGo(t *testing.T, s *informer.SharedInformer[pod], random *rand.Rand) {
	h := newHistorian()
	handle, err := s.Subscribe(h.handle, informer.HandlerOptions{Policy: informer.Policy(random.IntN(3)), Buffer: 1 + random.IntN(20)})
	if err != nil {
		t.Error(err)
		return
	}
	if random.IntN(2) == 0 {
		if err := handle.Synced(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if err := handle.Remove(context.Background(), informer.Removal(random.IntN(2))); err != nil {
		t.Error(err)
	}
	h.ended.Store(true)
	h.check(t)
}
