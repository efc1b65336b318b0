package informer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/cache"
)

func TestClose_LeavesTheCopyReadable(t *testing.T) {
	r := newFixture(t, nil)
	require.False(t, r.HasSynced())
	require.NoError(t, r.Err())
	l, handle := r.subscribe()
	r.put(pod{Name: "a"})
	require.True(t, r.HasSynced())

	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.ErrorIs(t, r.Err(), informer.ErrClosed)
	require.ErrorIs(t, handle.Err(), informer.ErrClosed)
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	_, err := r.AddEventHandler(informer.HandlerFuncs[pod]{}, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrClosed)
	require.ErrorIs(t, r.AddIndexers(cache.Indexers[pod]{"node": byNode}), informer.ErrClosed)
	require.ErrorIs(t, r.WaitForRevision(t.Context(), 100), informer.ErrClosed)
	require.NoError(t, r.WaitForRevision(t.Context(), 2), "that it had")
	require.Equal(t, []string{"a"}, keys(r.List(nil)))
	l.recorded()
	r.put(pod{Name: "b"})
	require.Empty(t, l.recorded())
}

func TestClose_AtAnyPoint(t *testing.T) {
	for turns := range 60 {
		executor, clock := actors.NewSeeded(uint64(turns)), enginetest.NewVirtualClock()
		host, err := engine.NewHost(engine.HostConfig{Executor: executor, Clock: clock, Seed: 1})
		require.NoError(t, err)
		source := enginetest.NewSource(podConfig())
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host})
		require.NoError(t, err)
		h := newHistory()
		first, err := s.Subscribe(h.handle, informer.HandlerOptions{Resync: time.Second})
		require.NoError(t, err)
		second, err := s.Subscribe(func(informer.Notification[pod]) { panic(errBad) }, informer.HandlerOptions{})
		require.NoError(t, err)
		churn(t, source, 1, 20, 3)
		executor.RunN(turns)
		churn(t, source, 2, 20, 3)
		executor.RunN(turns)
		require.NoError(t, s.Close())
		<-first.Done()
		<-second.Done()
		<-first.SyncedSignal()
		h.check(t)
		require.NoError(t, source.Close())
		executor.Run()
		enginetest.CheckLeaks(t, host)
		require.NoError(t, host.Close())
	}
}

func TestStop_FromAHandlerDoesNotWait(t *testing.T) {
	r := newFixture(t, nil)
	l := &recorder{before: func(informer.Notification[pod]) { r.Stop() }}
	handle := r.subscribeRecorder(l)
	r.put(pod{Name: "a"})
	<-handle.Done()
	require.Len(t, l.recorded(), 1)
	require.NoError(t, r.Close())
}

// Close would wait for the handler that calls it, so it returns at once and names it.
// What it has begun goes on.
func TestClose_FromAHandlerNamesTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSource(podConfig())
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source)})
		require.NoError(t, err)
		var failed error
		handle, err := s.Subscribe(func(informer.Notification[pod]) { failed = s.Close() }, informer.HandlerOptions{Name: "closing"})
		require.NoError(t, err)
		began := time.Now()
		_, err = source.Add(pod{Name: "a"})
		require.NoError(t, err)
		<-handle.Done()
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, failed, informer.ErrStillRunning)
		require.ErrorIs(t, failed, engine.ErrInHandler)
		require.ErrorContains(t, failed, "closing")
		require.NoError(t, s.Close())
		require.NoError(t, source.Close())
	})
}

// Only the handler that calls Close is running, and so holds it up.
func TestClose_FromAHandlerNamesNoneThatIsIdle(t *testing.T) {
	r := newFixture(t, nil)
	r.subscribe(informer.HandlerOptions{Name: "idle"})
	var failed, ended error
	r.subscribeRecorder(&recorder{before: func(informer.Notification[pod]) { failed, ended = r.Close(), r.Err() }}, informer.HandlerOptions{Name: "closing"})
	r.put(pod{Name: "a"})
	require.Equal(t, &informer.CloseError{Informer: "pods", Handlers: []string{"closing"}, Cause: engine.ErrInHandler}, failed)
	require.ErrorIs(t, ended, informer.ErrClosed, "it takes no more calls")
}

func TestClose_FromAFunctionOfTheConfigurationSaysSo(t *testing.T) {
	var r *fixture
	var failed error
	r = newFixture(t, func(cfg *informer.Config[pod]) {
		cfg.Transform = func(p pod) (pod, error) {
			failed = r.Close()
			return p, nil
		}
	})
	r.put(pod{Name: "a"})
	require.ErrorIs(t, failed, engine.ErrInHandler)
	require.EqualError(t, failed, "close informer pods: "+engine.ErrInHandler.Error(), "there is no handler to name")
}

// Nothing else closes it, and goleak would find the workers of its host.
func TestStop_FromAHandlerEndsTheInformersHost(t *testing.T) {
	others := goleak.IgnoreCurrent()
	source := enginetest.NewSource(podConfig())
	s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source)})
	require.NoError(t, err)
	handle, err := s.Subscribe(func(informer.Notification[pod]) { s.Stop() }, informer.HandlerOptions{})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "a"})
	require.NoError(t, err)
	<-handle.Done()
	for goleak.Find(others) != nil { // it gives up after half a second, and the host ends later on a busy machine
	}
	_, err = engine.New(engine.Config[pod]{Key: podConfig().Key, Host: s.Host()})
	require.ErrorIs(t, err, engine.ErrEngineClosed)
	require.NoError(t, source.Close())
}

// The handler goes on for longer than any Close waits, and stops once more. The
// bubble would not end before the workers of the host.
func TestStop_FromAHandlerThatGoesOnEndsTheInformersHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSource(podConfig())
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source)})
		require.NoError(t, err)
		handle, err := s.Subscribe(func(informer.Notification[pod]) {
			for range 3 {
				s.Stop()
				time.Sleep(time.Minute)
			}
		}, informer.HandlerOptions{})
		require.NoError(t, err)
		_, err = source.Add(pod{Name: "a"})
		require.NoError(t, err)
		<-handle.Done()
		require.NoError(t, source.Close())
	})
}

func TestStop_FromFunctionsOfTheConfiguration(t *testing.T) {
	var r *fixture
	var handle *informer.Registration
	leave := func() {
		if r != nil && handle != nil {
			handle.Stop(informer.Drain)
			r.Stop()
		}
	}
	for name, configure := range map[string]func(*informer.Config[pod]){
		"OnError":   func(cfg *informer.Config[pod]) { cfg.OnError = func(error) { leave() } },
		"Transform": func(cfg *informer.Config[pod]) { cfg.Transform = func(p pod) (pod, error) { leave(); return p, nil } },
		"Identity": func(cfg *informer.Config[pod]) {
			cfg.Identity = func(*informer.Object[pod]) string { leave(); return "" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			r = newFixture(t, configure)
			_, handle = r.subscribe()
			r.put(pod{Name: "a"})
			r.put(pod{Name: "a", N: 1})
			r.source.ResetWatches(nil)
			r.executor.Run()
			require.ErrorIs(t, r.Err(), informer.ErrClosed)
			<-handle.Done()
		})
	}
}

func TestClose_NamesTheHandlerThatDoesNotReturn(t *testing.T) {
	source := enginetest.NewSource(podConfig())
	host, err := engine.NewHost(engine.HostConfig{CloseTimeout: time.Millisecond})
	require.NoError(t, err)
	s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host, Name: "pods"})
	require.NoError(t, err)
	stuck := newGate()
	_, err = s.Subscribe(stuck.handle, informer.HandlerOptions{Name: "stuck"})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "a"})
	require.NoError(t, err)
	<-stuck.entered

	err = s.Close()
	require.ErrorIs(t, err, informer.ErrStillRunning)
	require.ErrorIs(t, err, engine.ErrStillRunning, "as that of engines, object caches and controllers is")
	require.ErrorContains(t, err, "stuck")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(stuck.open)
	for err != nil { // each Close gives up after a millisecond
		err = s.Close()
	}
	require.NoError(t, source.Close())
	for err = host.Close(); err != nil; {
		err = host.Close()
	}
}

func TestClose_EndsTheInformersHost(t *testing.T) {
	source := enginetest.NewSource(podConfig())
	s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source)})
	require.NoError(t, err)
	require.NoError(t, s.WaitSynced(t.Context()))
	require.NoError(t, s.Close())
	require.Zero(t, s.Host().Actors())
	require.NoError(t, source.Close())
}

func TestHost_ClosedBeforeTheInformer(t *testing.T) {
	source := enginetest.NewSource(podConfig())
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host})
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() { waited <- s.WaitForRevision(t.Context(), 1000) }()
	require.NoError(t, s.WaitSynced(t.Context()))
	require.NoError(t, host.Close())
	require.ErrorIs(t, <-waited, informer.ErrClosed)
	require.NoError(t, s.Close())
	require.NoError(t, source.Close())
}

// An informer may be closed before its actor has had a turn. Its actors are gone when Close returns.
func TestClose_AtOnceLeavesNoActor(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	source := enginetest.NewSource(podConfig())
	for range 300 {
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host})
		require.NoError(t, err)
		for range 20 {
			_, err := s.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		require.Zero(t, host.Actors())
	}
	require.NoError(t, source.Close())
	require.NoError(t, host.Close())
}

// An informer whose actor has not had a turn when its host closes ends with ErrClosed, and reports nothing.
func TestHost_ClosedBeforeAnythingHasRun(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{Clock: enginetest.NewVirtualClock(), Executor: actors.NewSeeded(1), Seed: 1})
	require.NoError(t, err)
	source := enginetest.NewSource(podConfig())
	var reported []error
	s, err := informer.New(informer.Config[pod]{
		Source: engine.SourceOf[pod](source), Host: host, OnError: func(err error) { reported = append(reported, err) },
	})
	require.NoError(t, err)
	handle, err := s.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
	require.NoError(t, err)
	require.NoError(t, host.Close())
	require.Equal(t, informer.ErrClosed, s.Err())
	require.ErrorIs(t, s.WaitSynced(t.Context()), informer.ErrClosed)
	require.ErrorIs(t, s.WaitForRevision(t.Context(), 1), informer.ErrClosed)
	<-handle.Done()
	require.ErrorIs(t, handle.WaitSynced(t.Context()), informer.ErrClosed)
	require.NoError(t, s.Close())
	require.Empty(t, reported)
	require.NoError(t, source.Close())
}

// closeSignalSource is a source that closes a channel when its watch is closed.
type closeSignalSource struct {
	*enginetest.Source[pod]
	closed chan struct{}
}

func (p *closeSignalSource) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := p.Source.Watch(ctx, opts)
	return &closeSignalWatcher{Watcher: w, closed: p.closed}, err
}

type closeSignalWatcher struct {
	backend.Watcher
	once   sync.Once
	closed chan struct{}
}

func (w *closeSignalWatcher) Close() {
	w.Watcher.Close()
	w.once.Do(func() { close(w.closed) })
}

// Close waits for the handler's present call, not for all that is pending: with a
// slow handler that could take for ever.
func TestClose_DoesNotWaitForWhatIsPending(t *testing.T) {
	source := enginetest.NewSource(podConfig())
	t.Cleanup(func() { require.NoError(t, source.Close()) })
	for n := range 100 {
		_, err := source.Add(pod{Name: fmt.Sprint(n)})
		require.NoError(t, err)
	}
	closed := make(chan struct{})
	s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](&closeSignalSource{source, closed})})
	require.NoError(t, err)
	require.NoError(t, s.WaitSynced(t.Context()))
	told := 0
	handle, err := s.Subscribe(func(informer.Notification[pod]) {
		told++
		s.Stop()
		<-closed
	}, informer.HandlerOptions{})
	require.NoError(t, err)
	<-handle.Done()
	require.NoError(t, s.Close())
	require.Equal(t, 1, told)
}
