package informer_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// traitless panics before the informer can follow it.
type traitless struct{ *enginetest.Source[pod] }

func (traitless) Traits() backend.Traits { panic("what traits?") }

func TestPanic_InTraitsEndsTheInformer(t *testing.T) {
	r := newFixture(t, func(cfg *informer.Config[pod]) {
		cfg.Source = engine.SourceOf[pod](traitless{cfg.Source.ListerWatcher.(*enginetest.Source[pod])})
	})
	require.ErrorIs(t, r.WaitSynced(t.Context()), usercode.ErrPanic)
	require.Equal(t, []error{r.Err()}, r.reported())
	var failure *informer.SourceError
	require.ErrorAs(t, r.Err(), &failure)
	require.True(t, failure.Final)
}

// OnError is called in the middle of following the source, which begins again.
func TestPanic_GoexitInOnErrorDoesNotEndTheInformer(t *testing.T) {
	var once sync.Once
	s, source := busy(t, func(cfg *informer.Config[pod]) {
		cfg.Backoff = quick
		cfg.OnError = func(error) { once.Do(runtime.Goexit) }
		cfg.Source.ListerWatcher.(*enginetest.Source[pod]).FailList(1, nil)
	})
	require.NoError(t, s.WaitSynced(t.Context()))
	rev, err := source.Add(pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	require.EqualValues(t, 1, s.Stats().Source.Restarts)
}

func TestPanic_CostsOneNotification(t *testing.T) {
	r := newFixture(t, nil)
	poisoned := &recorder{before: func(n informer.Notification[pod]) {
		if n.Key() == "b" {
			panic(errBad)
		}
	}}
	handle := r.subscribeRecorder(poisoned, informer.HandlerOptions{Name: "poisoned"})
	well, _ := r.subscribe()
	for _, name := range []string{"a", "b", "c"} {
		r.write(pod{Name: name})
	}
	require.NoError(t, handle.WaitSynced(t.Context()), "a panic does not keep it from syncing")
	r.put(pod{Name: "a", N: 1})
	require.Equal(t, []string{"ADDED a@2 initial", "ADDED c@4 initial", "MODIFIED a@2→5 change"}, poisoned.recorded())
	require.Len(t, well.recorded(), 4)

	require.ErrorIs(t, handle.Err(), informer.ErrHandlerPanic)
	errs := r.reported()
	require.Len(t, errs, 1)
	var failure *informer.PanicError
	require.ErrorAs(t, errs[0], &failure)
	require.Equal(t, "poisoned", failure.Handler)
	require.Equal(t, "ADDED b@3 initial", failure.Notification)
	require.ErrorIs(t, failure, errBad)
	var panicked *usercode.PanicError
	require.ErrorAs(t, failure, &panicked)
	require.Equal(t, "b", panicked.Key)
	require.EqualValues(t, 3, panicked.Revision)
}

func TestPanic_EndsAHandlerThatAsksForIt(t *testing.T) {
	r := newFixture(t, nil)
	l := &recorder{before: func(n informer.Notification[pod]) {
		if n.Key() == "b" {
			panic("no more")
		}
	}}
	handle := r.subscribeRecorder(l, informer.HandlerOptions{OnPanic: informer.EndHandler})
	well, _ := r.subscribe()
	for _, name := range []string{"a", "b", "c"} {
		r.put(pod{Name: name})
	}
	<-handle.Done()
	<-handle.SyncedSignal()
	require.ErrorIs(t, handle.Err(), informer.ErrHandlerPanic)
	require.Equal(t, []string{"ADDED a@2 initial"}, l.recorded())
	require.Len(t, well.recorded(), 3)
}

func TestPanic_GoexitEndsTheHandlerAlone(t *testing.T) {
	s, source := busy(t, nil)
	handle, err := s.Subscribe(func(informer.Notification[pod]) { runtime.Goexit() }, informer.HandlerOptions{})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "a"})
	require.NoError(t, err)
	<-handle.Done()
	require.EqualError(t, handle.Err(), "handler "+handle.Name()+" failed: "+usercode.ErrGoexit.Error())
	rev, err := source.Add(pod{Name: "b"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev), "the informer goes on")
}

func TestPanic_GoexitOfAHandlerThatWasRemovedIsReported(t *testing.T) {
	reported := make(chan error, 1)
	s, source := busy(t, func(cfg *informer.Config[pod]) { cfg.OnError = func(err error) { reported <- err } })
	entered, open := make(chan struct{}), make(chan struct{})
	handle, err := s.Subscribe(func(informer.Notification[pod]) {
		close(entered)
		<-open
		runtime.Goexit()
	}, informer.HandlerOptions{})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "a"})
	require.NoError(t, err)
	<-entered
	handle.Stop(informer.Drain)
	rev, err := source.Add(pod{Name: "b"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev), "it gets no later commit")
	close(open)
	<-handle.Done()
	require.ErrorIs(t, handle.Err(), usercode.ErrGoexit)
	require.ErrorIs(t, <-reported, informer.ErrHandlerPanic)
}
