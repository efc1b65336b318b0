package engine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
)

func TestHandlerThatPanicsEndsItsWatchAlone(t *testing.T) {
	errSpilled := errors.New("spilled the coffee")
	for name, value := range map[string]any{"an error": errSpilled, "text": "oh no"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			var handled []string
			bad, err := r.engine.Handle(t.Context(), engine.WatchOptions{}, func(ev engine.Event[thing]) {
				if handled = append(handled, ev.Key()); ev.Key() == "b" {
					panic(value)
				}
			})
			require.NoError(t, err)
			beside := r.watch(engine.WatchOptions{})
			for _, key := range []string{"a", "b", "c"} {
				r.put(key)
			}
			require.Equal(t, []string{"a", "b"}, handled, "nothing after the panic")
			var panicked *engine.PanicError
			require.ErrorAs(t, bad.Err(), &panicked)
			require.ErrorIs(t, bad.Err(), engine.ErrHandlerPanic)
			require.Equal(t, engine.Revision(3), panicked.Revision)
			require.Equal(t, "b", panicked.Key)
			require.Equal(t, value, panicked.Value)
			require.Contains(t, string(panicked.Stack), "fault_consumer_test.go", "where it happened")
			require.Equal(t, name == "an error", errors.Is(bad.Err(), errSpilled))
			r.requireReads(beside, "ADDED a@2", "ADDED b@3", "ADDED c@4")
			s := r.engine.Stats()
			require.Equal(t, [3]uint64{1, 1, 0}, [3]uint64{uint64(s.Watches), s.Panicked, s.Failures})
		})
	}
}

func TestHandlerThatEndsItsGoroutineEndsItsWatchAlone(t *testing.T) {
	e, err := engine.New(cfg())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	bad, err := e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
		new(testing.T).FailNow() // which is runtime.Goexit
	})
	require.NoError(t, err)
	beside, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	_, err = e.Create(t.Context(), pod{Name: "a"})
	require.NoError(t, err)
	events, err := beside.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, events, 1)
	<-bad.Done()
	require.Error(t, bad.Err(), "it says that it ended")
}

func TestConsumerThatNeverReadsCostsNobodyAnything(t *testing.T) {
	for _, policy := range []engine.Policy{engine.Park, engine.Terminate, engine.Conflate} {
		t.Run(policy.String(), func(t *testing.T) {
			r := newRig(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.Window.MaxEvents = 100 })
			never := r.watch(engine.WatchOptions{Policy: policy, Buffer: 3})
			reader := r.watch(engine.WatchOptions{})
			for n := range 1000 {
				rev := r.put("a")
				seen, end := r.read(reader)
				require.NoError(t, end)
				require.Len(t, seen, 1, "write %d, revision %d", n, rev)
			}
			require.LessOrEqual(t, r.engine.Stats().WindowEvents, 100+25, "the one that never reads keeps nothing")
			require.Zero(t, never.Delivered())
		})
	}
}

func TestConsumerThatStopsInTheMiddleOfABatch(t *testing.T) {
	r := newRig(t, nil)
	w := r.watch(engine.WatchOptions{})
	for range 10 {
		r.put("a")
	}
	taken := 0
	for _, err := range w.Events() {
		require.NoError(t, err)
		if taken++; taken == 4 {
			w.Stop()
			break
		}
	}
	from := w.Revision()
	require.Equal(t, engine.Revision(5), from, "the revision of the fourth event")
	r.executor.Run()
	require.Zero(t, r.engine.Stats().Watches)
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
	seen, end := r.read(r.watch(engine.WatchOptions{From: from}))
	require.NoError(t, end)
	require.Len(t, seen, 6, "who resumes there has the rest")
}

func TestHandlerThatStopsItsOwnWatchGetsNothingMore(t *testing.T) {
	r := newRig(t, nil)
	var w *engine.Watch[thing]
	handled := 0
	w, err := r.engine.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[thing]) {
		if handled++; handled == 3 {
			w.Stop()
		}
	})
	require.NoError(t, err)
	for n := range 10 {
		_, err := r.engine.Put(t.Context(), thing{Key: "a", N: n})
		require.NoError(t, err)
	}
	r.executor.Run()
	require.Equal(t, 3, handled)
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
}

func TestSecondConsumerIsRefused(t *testing.T) {
	r := newRig(t, nil)
	handled, err := r.engine.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[thing]) {})
	require.NoError(t, err)
	_, err = handled.Next(t.Context())
	require.ErrorIs(t, err, engine.ErrConsumed)
	require.ErrorContains(t, err, "use one of")
	for _, err := range handled.Events() {
		require.ErrorIs(t, err, engine.ErrConsumed)
	}
	_, open := <-handled.Chan()
	require.False(t, open)
}

func TestCloseGivesUpOnAHandlerThatIsStuck(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{CloseTimeout: 1})
	require.NoError(t, err)
	open := func(name string) *engine.Engine[pod] {
		c := cfg()
		c.Host, c.Name = host, name
		e, err := engine.New(c)
		require.NoError(t, err)
		return e
	}
	e, other := open("orders"), open("bystander")
	_, err = other.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	stuck, release := make(chan struct{}), make(chan struct{})
	_, err = e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
		close(stuck)
		<-release
	})
	require.NoError(t, err)
	_, err = e.Create(t.Context(), pod{Name: "a"})
	require.NoError(t, err)
	<-stuck

	err = e.Close()
	require.ErrorIs(t, err, actors.ErrStillRunning)
	require.ErrorContains(t, err, "orders", "which engine")
	var running *actors.StillRunningError
	require.ErrorAs(t, err, &running)
	require.Equal(t, 1, running.Wakers, "the one watch, and not the other engine's")
	require.NotContains(t, append(running.Waiting, running.Busy...), "bystander")
	require.Equal(t, err, e.Close(), "closing again changes nothing")
	_, err = e.Create(t.Context(), pod{Name: "b"})
	require.ErrorIs(t, err, engine.ErrEngineClosed)
	require.ErrorAs(t, host.Close(), &running)
	close(release)
	for host.Close() != nil { // each attempt waits as long as the host allows
	}
}
