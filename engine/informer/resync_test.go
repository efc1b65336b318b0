package informer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/usercode"
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
	require.NoError(t, handle.WaitSynced(t.Context()))
	_, err = source.Modify(pod{Name: "a", N: 1})
	require.NoError(t, err)
	<-seen
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
}

// The user's clock fails when the next resync is armed. The handler goes on, and its
// resyncs with the next delivery.
func TestResync_GoesOnAfterTheClockHasFailed(t *testing.T) {
	for name, before := range map[string]time.Duration{"first": 0, "later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			virtual, executor := clock.NewVirtual(time.Unix(0, 0)), actors.NewSeeded(1)
			wire := &clocktest.Failing{Clock: virtual, Counts: func(_ clocktest.Call, d time.Duration) bool { return d == time.Minute }}
			host, err := engine.NewHost(engine.HostConfig{Clock: wire, Executor: executor, Seed: 1})
			require.NoError(t, err)
			source := enginetest.NewSourceWith(podConfig(), enginetest.SourceOptions{Clock: host.Clock()})
			var errs []error
			s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host, OnError: func(err error) { errs = append(errs, err) }})
			require.NoError(t, err)
			if before == 0 {
				wire.Fail(clocktest.AfterFunc, 0, 1)
			}
			l := &recorder{}
			_, err = s.Subscribe(l.handle, informer.HandlerOptions{Resync: time.Minute})
			require.NoError(t, err)
			pass := func(d time.Duration) {
				virtual.Advance(d)
				executor.Run()
			}
			pass(0)
			if before > 0 {
				wire.Fail(clocktest.AfterFunc, 0, 1)
				pass(before)
			}
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], usercode.ErrPanic)
			_, err = source.Add(pod{Name: "a"})
			require.NoError(t, err)
			pass(0)
			require.NotEmpty(t, l.recorded())
			pass(time.Minute)
			require.Len(t, l.recorded(), 1)
			require.NoError(t, s.Close())
			require.NoError(t, source.Close())
			require.Zero(t, host.Timers())
			require.NoError(t, host.Close())
		})
	}
}

// A handler that is slower than its period would otherwise never be removed.
func TestResync_NoneBeginsDuringADrain(t *testing.T) {
	r := newFixture(t, nil)
	r.put(pod{Name: "a"})
	r.put(pod{Name: "b"})
	var got []string
	handle, err := r.Subscribe(func(n informer.Notification[pod]) {
		if got = append(got, n.String()); len(got) < 10 {
			r.clock.Advance(time.Minute)
		}
	}, informer.HandlerOptions{Resync: time.Minute})
	require.NoError(t, err)
	handle.Stop(informer.Drain)
	r.executor.Run()
	require.Equal(t, []string{"ADDED a@2 replay", "ADDED b@3 replay"}, got)
	require.ErrorIs(t, handle.Err(), informer.ErrRemoved)
}
