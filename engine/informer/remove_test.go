package informer_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
)

func TestRemove_NothingIsDeliveredAfterIt(t *testing.T) {
	r := newFixture(t, nil)
	stays, _ := r.subscribe()
	goes, handle := r.subscribe()
	r.put(pod{Name: "a"})
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	require.ErrorIs(t, handle.Err(), informer.ErrRemoved)
	r.put(pod{Name: "b"})
	require.Equal(t, []string{"ADDED a@2 initial"}, goes.recorded())
	require.Len(t, stays.recorded(), 2)
}

func TestRemove_Twice(t *testing.T) {
	r := newFixture(t, nil)
	_, handle := r.subscribe()
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	require.NoError(t, handle.Remove(t.Context(), informer.Drop))
	require.ErrorIs(t, handle.WaitSynced(t.Context()), informer.ErrNotSynced, "it never had the first list")
}

// Handlers may come and go for as long as an informer runs, each with all that its function refers to.
func TestRemove_LeavesNothingOfTheHandler(t *testing.T) {
	r := newFixture(t, nil)
	var gone []weak.Pointer[recorder]
	for i := range 3 {
		l, handle := r.subscribe()
		r.put(pod{Name: fmt.Sprint(i)})
		require.Len(t, l.recorded(), i+1)
		require.NoError(t, handle.Remove(t.Context(), informer.Drain))
		gone = append(gone, weak.Make(l))
	}
	runtime.GC()
	for _, l := range gone[:2] { // a mailbox may still have the last
		require.Nil(t, l.Value())
	}
}

func TestStop_OfARunningHandlerDrainsOrDrops(t *testing.T) {
	for how, want := range map[informer.Removal][]string{
		informer.Drain: {"ADDED a@2 initial", "ADDED b@3 change", "ADDED c@4 change"},
		informer.Drop:  {"ADDED a@2 initial", "ADDED b@3 change"},
	} {
		r := newFixture(t, nil)
		var handle *informer.Registration
		l := &recorder{}
		l.before = func(n informer.Notification[pod]) {
			if n.Key() == "b" { // c is committed behind it
				handle.Stop(how)
			}
		}
		handle = r.subscribeRecorder(l)
		r.put(pod{Name: "a"})
		r.write(pod{Name: "b"})
		r.write(pod{Name: "c"})
		r.executor.Run()
		r.put(pod{Name: "d"})
		require.Equal(t, want, l.recorded())
		require.ErrorIs(t, handle.Err(), informer.ErrRemoved)
	}
}

func TestStop_LeavesNothingPending(t *testing.T) {
	r := newFixture(t, nil)
	var handle *informer.Registration
	l := &recorder{before: func(n informer.Notification[pod]) {
		if n.Key() == "b" {
			r.write(pod{Name: "c"})
			r.executor.RunN(50) // c is committed behind it
			require.Equal(t, 2, handle.Lag())
			handle.Stop(informer.Drop)
		}
	}}
	handle = r.subscribeRecorder(l)
	r.put(pod{Name: "a"})
	r.put(pod{Name: "b"})
	<-handle.Done()
	require.Len(t, l.recorded(), 2)
	require.Zero(t, handle.Lag())
}

func TestStop_FromTheHandlerDoesNotWait(t *testing.T) {
	r := newFixture(t, nil)
	var handle *informer.Registration
	l := &recorder{}
	l.before = func(n informer.Notification[pod]) {
		if n.Key() == "b" {
			handle.Stop(informer.Drop)
		}
	}
	handle = r.subscribeRecorder(l)
	for _, name := range []string{"a", "b", "c"} {
		r.put(pod{Name: name})
	}
	require.Equal(t, []string{"ADDED a@2 initial", "ADDED b@3 change"}, l.recorded())
	<-handle.Done()
}

func TestRemove_WaitsForTheHandler(t *testing.T) {
	s, source := busy(t, nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	handle, err := s.Subscribe(func(informer.Notification[pod]) {
		close(entered)
		<-leave
	}, informer.HandlerOptions{})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "a"})
	require.NoError(t, err)
	<-entered
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBad)
	require.ErrorIs(t, handle.Remove(ctx, informer.Drop), errBad, "it still runs")
	select {
	case <-handle.Done():
		require.Fail(t, "it still runs")
	default:
	}
	close(leave)
	require.NoError(t, handle.Remove(t.Context(), informer.Drop))
	<-handle.Done()
}

func TestRemove_AtAnyPointOfItsLife(t *testing.T) {
	r := newFixture(t, nil)
	_, neverStarted := r.subscribe()
	require.NoError(t, neverStarted.Remove(t.Context(), informer.Drain))
	_, early := r.subscribe()
	r.put(pod{Name: "a"})
	require.NoError(t, early.Remove(t.Context(), informer.Drain))
	late, handle := r.subscribe()
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	require.Equal(t, []string{"ADDED a@2 replay"}, late.recorded(), "it was there when the handler was added")
}

// Closing cuts the deliveries of a handler short that has been removed and is draining.
func TestStop_OfTheInformerEndsHandlersThatDrain(t *testing.T) {
	s, source := busy(t, nil)
	var rev engine.Revision
	for i := range 10 {
		var err error
		rev, err = source.Add(pod{Name: fmt.Sprint("p", i)})
		require.NoError(t, err)
	}
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	slow, calls := newGate(), 0
	draining, err := s.Subscribe(func(n informer.Notification[pod]) {
		calls++
		slow.handle(n)
	}, informer.HandlerOptions{})
	require.NoError(t, err)
	<-slow.entered
	draining.Stop(informer.Drain)
	other, err := s.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
	require.NoError(t, err)
	require.NoError(t, other.WaitSynced(t.Context()))
	s.Stop()
	<-other.Done() // so the handlers have been told
	close(slow.open)
	<-draining.Done()
	require.Equal(t, 1, calls)
}
