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

// slowReports waits for OnError to get the report of a slow handler.
type slowReports struct {
	once sync.Once
	told chan struct{}
	slow *informer.SlowHandlerError // read it after told
}

func newSlowReports() *slowReports { return &slowReports{told: make(chan struct{})} }

func (c *slowReports) add(err error) {
	var slow *informer.SlowHandlerError
	if errors.As(err, &slow) {
		c.once.Do(func() {
			c.slow = slow
			close(c.told)
		})
	}
}

// wait returns the first report.
func (c *slowReports) wait() *informer.SlowHandlerError {
	<-c.told
	return c.slow
}

// A handler that blocks for ever delays neither the copy, nor the other handlers,
// nor the source; what is kept for it is bounded; OnError gets a report.
func TestSlowHandler_ThatBlocksForEverCostsNothingElse(t *testing.T) {
	for _, policy := range []informer.Policy{informer.Merge, informer.Resnapshot} {
		t.Run(policy.String(), func(t *testing.T) {
			told := newSlowReports()
			s, source := busy(t, func(cfg *informer.Config[pod]) { cfg.OnError = told.add })
			stuck := newGate()
			blocked, err := s.Subscribe(stuck.handle, informer.HandlerOptions{Name: "stuck", Policy: policy, Buffer: 10})
			require.NoError(t, err)
			well := newHistory()
			other, err := s.Subscribe(well.handle, informer.HandlerOptions{})
			require.NoError(t, err)
			_, err = source.Add(pod{Name: "first"})
			require.NoError(t, err)
			<-stuck.entered

			last := churn(t, source, 3, 20_000, 20)
			require.NoError(t, s.WaitForRevision(t.Context(), last))
			require.NoError(t, other.Remove(t.Context(), informer.Drain))
			well.checkState(t, s.Snapshot())
			require.LessOrEqual(t, blocked.Lag(), 2*20+10+1, "the objects that it knows and those that exist")
			slow := told.wait()
			require.Equal(t, "stuck", slow.Handler)
			require.ErrorIs(t, slow, informer.ErrSlowHandler)

			close(stuck.open) // it comes back, and catches up
			require.NoError(t, blocked.Remove(t.Context(), informer.Drain))
			stuck.seen.checkState(t, s.Snapshot())
			require.Less(t, stuck.seen.calls.Load(), int64(10_000), "it does not get every change")
		})
	}
}

// Block passes a handler's pace on to the source, and leaves nothing out.
func TestBlock_BackpressureReachesTheSource(t *testing.T) {
	told := newSlowReports()
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
	stuck.seen.checkState(t, s.Snapshot())
}

// A handler that blocks the source for ever can be removed, which releases the
// source.
func TestBlock_HandlerCanBeRemoved(t *testing.T) {
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
	require.Equal(t, int64(1), stuck.seen.calls.Load(), "its call returned, and no other was made")
}

// A handler that ends while it holds the source releases it, too.
func TestBlock_HandlerThatEndsReleasesTheSource(t *testing.T) {
	told := newSlowReports()
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
