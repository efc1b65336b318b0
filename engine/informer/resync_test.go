package informer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/informer"
)

func TestResync_IsEachHandlersOwn(t *testing.T) {
	r := newFixture(t, nil)
	never, _ := r.subscribe()
	two, _ := r.subscribe(informer.HandlerOptions{Resync: 2 * time.Second})
	three, _ := r.subscribe(informer.HandlerOptions{Resync: 3 * time.Second})
	r.put(pod{Name: "a"})
	for _, l := range []*recorder{never, two, three} {
		require.Len(t, l.recorded(), 1)
	}
	r.pass(12 * time.Second)
	require.Empty(t, never.recorded())
	require.Len(t, two.recorded(), 6)
	require.Equal(t, []string{
		"MODIFIED a@2→2 resync", "MODIFIED a@2→2 resync", "MODIFIED a@2→2 resync", "MODIFIED a@2→2 resync",
	}, three.recorded())
}

func TestResync_BeforeTheFirstList(t *testing.T) {
	r := newFixture(t, nil)
	r.source.FailList(5, nil)
	l, _ := r.subscribe(informer.HandlerOptions{Resync: 500 * time.Millisecond})
	r.put(pod{Name: "a"})
	r.pass(3 * time.Second)
	require.Empty(t, l.recorded(), "there is nothing to repeat")
	r.pass(3 * time.Second)
	lines := l.recorded()
	require.Equal(t, "ADDED a@2 initial", lines[0])
	require.Contains(t, lines, "MODIFIED a@2→2 resync")
}

func TestResync_IsNotStarvedByRelists(t *testing.T) {
	r := newFixture(t, nil)
	l, _ := r.subscribe(informer.HandlerOptions{Resync: 90 * time.Second})
	r.put(pod{Name: "a"})
	l.recorded()
	for range 6 { // each lists again, and lets a minute pass
		r.relist(func() error { return nil })
	}
	require.Len(t, l.recorded(), 4)
}

// A resync that is always due leaves room for changes.
func TestResync_DoesNotStarveChanges(t *testing.T) {
	s, source := busy(t, nil)
	rev, err := source.Add(pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	seen := make(chan struct{})
	handle, err := s.Subscribe(func(n informer.Notification[pod]) {
		if n.Object.Value.N == 1 && n.Cause == informer.Change {
			close(seen)
		}
	}, informer.HandlerOptions{Resync: 1})
	require.NoError(t, err)
	require.NoError(t, handle.Synced(t.Context()))
	_, err = source.Modify(pod{Name: "a", N: 1})
	require.NoError(t, err)
	<-seen
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
}
