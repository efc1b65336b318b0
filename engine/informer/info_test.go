package informer_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/informer"
)

func TestHandlers_AreListedTheSlowestFirst(t *testing.T) {
	f := newFixture(t, nil)
	var during [][]informer.HandlerInfo
	note := func(informer.Notification[pod]) { during = append(during, f.Handlers()) }
	audit, err := f.Subscribe(note, informer.HandlerOptions{Name: "audit"})
	require.NoError(t, err)
	f.put(pod{Name: "a"}) // the first list
	f.executor.Run()
	during = nil

	idle := func(name string) informer.HandlerInfo { return informer.HandlerInfo{Name: name, Synced: true} }
	require.Equal(t, []informer.HandlerInfo{idle("audit")}, f.Handlers())
	billing, err := f.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{Name: "billing", Policy: informer.Block})
	require.NoError(t, err)
	require.Equal(t, []informer.HandlerInfo{idle("audit"), {Name: "billing", Policy: informer.Block}}, f.Handlers(), "billing has had no turn")
	f.put(pod{Name: "b"})
	require.Len(t, during, 1)
	require.Contains(t, during[0], informer.HandlerInfo{Name: "audit", Lag: 1, Synced: true, Running: true})
	require.GreaterOrEqual(t, during[0][0].Lag, during[0][1].Lag)

	billing.Stop(informer.Drop)
	f.executor.Run()
	require.Equal(t, []informer.HandlerInfo{idle("audit")}, f.Handlers())
	audit.Stop(informer.Drop)
	f.executor.Run()
	require.Empty(t, f.Handlers())
}

// Of many handlers the one that is behind comes first, whenever it was added.
func TestHandlers_AreSortedByTheirLag(t *testing.T) {
	s, source := busy(t, nil)
	quick, err := s.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{Name: "quick"})
	require.NoError(t, err)
	stuck := newGate()
	slow, err := s.Subscribe(stuck.handle, informer.HandlerOptions{Name: "stuck", Buffer: 100})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "first"})
	require.NoError(t, err)
	<-stuck.entered
	rev := churn(t, source, 3, 10, 5)
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	for slow.Lag() < 2 || quick.Lag() > 0 { // the informer has the objects before its handlers
		runtime.Gosched()
	}
	handlers := s.Handlers()
	require.Equal(t, "stuck", handlers[0].Name)
	require.True(t, handlers[0].Running)
	require.Greater(t, handlers[0].Lag, 1)
	close(stuck.open)
}
