package informer_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

// gate is a handler that waits, told one thing, until it is opened.
type gate struct {
	entered, open chan struct{}
	once          sync.Once
	told          *historian
}

func newGate() *gate {
	return &gate{entered: make(chan struct{}), open: make(chan struct{}), told: newHistorian()}
}

func (g *gate) handle(n informer.Notification[pod]) {
	g.once.Do(func() { close(g.entered) })
	<-g.open
	g.told.handle(n)
}

// complaints waits for OnError to be told that a handler is slow.
type complaints struct {
	once sync.Once
	told chan struct{}
	slow *informer.SlowHandlerError // read it after told
}

func newComplaints() *complaints { return &complaints{told: make(chan struct{})} }

func (c *complaints) add(err error) {
	var slow *informer.SlowHandlerError
	if errors.As(err, &slow) {
		c.once.Do(func() {
			c.slow = slow
			close(c.told)
		})
	}
}

// wait returns the first complaint about a handler that is slow.
func (c *complaints) wait() *informer.SlowHandlerError {
	<-c.told
	return c.slow
}

// A handler that blocks for good delays neither the store, nor the others, nor
// the source; what is kept for it is bounded; it is told, and can be dropped.
func TestPain_HandlerThatBlocksForGood(t *testing.T) {
	for _, policy := range []informer.Policy{informer.Merge, informer.Resnapshot} {
		t.Run(policy.String(), func(t *testing.T) {
			told := newComplaints()
			s, source := busy(t, func(cfg *informer.Config[pod]) { cfg.OnError = told.add })
			stuck := newGate()
			blocked, err := s.Subscribe(stuck.handle, informer.HandlerOptions{Name: "stuck", Policy: policy, Buffer: 10})
			require.NoError(t, err)
			well := newHistorian()
			other, err := s.Subscribe(well.handle, informer.HandlerOptions{})
			require.NoError(t, err)
			_, err = source.Add(pod{Name: "first"})
			require.NoError(t, err)
			<-stuck.entered

			last := churn(t, source, 3, 20_000, 20)
			require.NoError(t, s.WaitForRevision(t.Context(), last))
			require.NoError(t, other.Remove(t.Context(), informer.Drain))
			well.checkState(t, s.Snapshot())
			require.LessOrEqual(t, blocked.Lag(), 2*20+10+1, "the objects that it knows and those that there are")
			slow := told.wait()
			require.Equal(t, "stuck", slow.Handler)
			require.ErrorIs(t, slow, informer.ErrSlowHandler)

			close(stuck.open) // it comes back, and catches up
			require.NoError(t, blocked.Remove(t.Context(), informer.Drain))
			stuck.told.checkState(t, s.Snapshot())
			require.Less(t, stuck.told.calls.Load(), int64(10_000), "it was not told everything")
		})
	}
}

// Block passes a handler's pace on to the source, and nothing is left out.
func TestPain_BackpressureReachesTheSource(t *testing.T) {
	told := newComplaints()
	s, source := busy(t, func(cfg *informer.Config[pod]) { cfg.OnError = told.add })
	stuck := newGate()
	blocked, err := s.Subscribe(stuck.handle, informer.HandlerOptions{Name: "stuck", Policy: informer.Block, Buffer: 10})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "first"})
	require.NoError(t, err)
	<-stuck.entered
	const events = 20_000
	last := churn(t, source, 3, events, 20)
	require.Equal(t, informer.Block, told.wait().Policy)
	require.Less(t, s.Revision(), last, "the rest is still with the source")
	require.Less(t, blocked.Lag(), events/2)

	close(stuck.open)
	require.NoError(t, s.WaitForRevision(t.Context(), last))
	require.NoError(t, blocked.Remove(t.Context(), informer.Drain))
	stuck.told.checkState(t, s.Snapshot())
}

// A handler that blocks the source for good can be removed, which lets it go.
func TestBlockingHandlerIsRemovable(t *testing.T) {
	s, source := busy(t, nil)
	stuck := newGate()
	blocked, err := s.Subscribe(stuck.handle, informer.HandlerOptions{Policy: informer.Block, Buffer: 1})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "first"})
	require.NoError(t, err)
	<-stuck.entered
	var last store.Revision
	for i := range 5000 {
		last, err = source.Add(pod{Name: fmt.Sprint(i)})
		require.NoError(t, err)
	}
	removed := make(chan error, 1)
	go func() { removed <- blocked.Remove(t.Context(), informer.Drop) }()
	require.NoError(t, s.WaitForRevision(t.Context(), last), "the source goes on before the handler has returned")
	close(stuck.open)
	require.NoError(t, <-removed)
	require.Zero(t, stuck.told.calls.Load()-1)
}

// One that ends while it holds the source lets it go, too.
func TestBlockingHandlerThatEndsLetsTheSourceGo(t *testing.T) {
	told := newComplaints()
	s, source := busy(t, func(cfg *informer.Config[pod]) { cfg.OnError = told.add })
	entered, leave := make(chan struct{}), make(chan struct{})
	handle, err := s.Subscribe(func(informer.Notification[pod]) {
		close(entered)
		<-leave
		panic(errBad)
	}, informer.HandlerOptions{Policy: informer.Block, Buffer: 1, OnPanic: informer.EndHandler})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "first"})
	require.NoError(t, err)
	<-entered
	last := churn(t, source, 1, 20_000, 20)
	told.wait()
	close(leave)
	<-handle.Done()
	require.NoError(t, s.WaitForRevision(t.Context(), last))
}
