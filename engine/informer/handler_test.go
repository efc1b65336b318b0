package informer_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend"
)

func TestClientRow067_083_106_EachHandlerHasItsOwnResync(t *testing.T) {
	r := newRig(t, nil)
	never, _ := r.subscribe()
	two, _ := r.subscribe(informer.HandlerOptions{Resync: 2 * time.Second})
	three, _ := r.subscribe(informer.HandlerOptions{Resync: 3 * time.Second})
	r.put(pod{Name: "a"})
	for _, l := range []*log{never, two, three} {
		require.Len(t, l.told(), 1)
	}
	r.pass(12 * time.Second)
	require.Empty(t, never.told())
	require.Len(t, two.told(), 6)
	require.Equal(t, []string{
		"MODIFIED a@2→2 resync", "MODIFIED a@2→2 resync", "MODIFIED a@2→2 resync", "MODIFIED a@2→2 resync",
	}, three.told())
}

func TestClientRow107_ResyncOfAHandlerThatHasNotBegun(t *testing.T) {
	r := newRig(t, nil)
	r.source.FailList(5, nil)
	l, _ := r.subscribe(informer.HandlerOptions{Resync: 500 * time.Millisecond})
	r.put(pod{Name: "a"})
	r.pass(3 * time.Second)
	require.Empty(t, l.told(), "there is nothing to tell again")
	r.pass(3 * time.Second)
	lines := l.told()
	require.Equal(t, "ADDED a@2 initial", lines[0])
	require.Contains(t, lines, "MODIFIED a@2→2 resync")
}

func TestPain_ResyncIsNotStarvedByRelists(t *testing.T) {
	r := newRig(t, nil)
	l, _ := r.subscribe(informer.HandlerOptions{Resync: 90 * time.Second})
	r.put(pod{Name: "a"})
	l.told()
	for range 6 { // each lists again, and lets a minute pass
		r.relist(func() error { return nil })
	}
	require.Len(t, l.told(), 4)
}

// A resync that is always due leaves room for what is new.
func TestResyncDoesNotStarveChanges(t *testing.T) {
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

func TestClientRow168_HandlersHaveNames(t *testing.T) {
	r := newRig(t, nil)
	_, first := r.subscribe()
	_, second := r.subscribe(informer.HandlerOptions{Name: "scheduler"})
	_, third := r.subscribe()
	require.Equal(t, []string{"handler-1", "scheduler", "handler-3"}, []string{first.Name(), second.Name(), third.Name()})
	require.Equal(t, "pods", r.Name())
}

func TestClientRow114_RemovedHandlersAreToldNothing(t *testing.T) {
	r := newRig(t, nil)
	stays, _ := r.subscribe()
	goes, handle := r.subscribe()
	r.put(pod{Name: "a"})
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	require.ErrorIs(t, handle.Err(), informer.ErrRemoved)
	r.put(pod{Name: "b"})
	require.Equal(t, []string{"ADDED a@2 initial"}, goes.told())
	require.Len(t, stays.told(), 2)
}

func TestClientRow116_OneHandlerTwoHandles(t *testing.T) {
	r := newRig(t, nil)
	l, first := r.subscribe()
	second := r.subscribeLog(l)
	r.put(pod{Name: "a"})
	require.Len(t, l.told(), 2)
	require.NoError(t, first.Remove(t.Context(), informer.Drop))
	r.put(pod{Name: "b"})
	require.Len(t, l.told(), 1)
	require.NoError(t, second.Remove(t.Context(), informer.Drop))
	r.put(pod{Name: "c"})
	require.Empty(t, l.told())
}

func TestClientRow117_RemovingTwice(t *testing.T) {
	r := newRig(t, nil)
	_, handle := r.subscribe()
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	require.NoError(t, handle.Remove(t.Context(), informer.Drop))
	require.ErrorIs(t, handle.Synced(t.Context()), informer.ErrNotSynced, "it was never told the first list")
}

func TestClientRow122_RemoveWhileActive(t *testing.T) {
	for how, want := range map[informer.Removal][]string{
		informer.Drain: {"ADDED a@2 initial", "ADDED b@3 change", "ADDED c@4 change"},
		informer.Drop:  {"ADDED a@2 initial", "ADDED b@3 change"},
	} {
		r := newRig(t, nil)
		var handle *informer.Registration
		l := &log{}
		l.before = func(n informer.Notification[pod]) {
			if n.Key() == "b" { // c is committed behind it
				handle.Stop(how)
			}
		}
		handle = r.subscribeLog(l)
		r.put(pod{Name: "a"})
		r.write(pod{Name: "b"})
		r.write(pod{Name: "c"})
		r.executor.Run()
		r.put(pod{Name: "d"})
		require.Equal(t, want, l.told())
		require.ErrorIs(t, handle.Err(), informer.ErrRemoved)
	}
}

func TestClientRow125_PanicsCostOneNotification(t *testing.T) {
	r := newRig(t, nil)
	poisoned := &log{before: func(n informer.Notification[pod]) {
		if n.Key() == "b" {
			panic(errBad)
		}
	}}
	handle := r.subscribeLog(poisoned, informer.HandlerOptions{Name: "poisoned"})
	well, _ := r.subscribe()
	for _, name := range []string{"a", "b", "c"} {
		r.write(pod{Name: name})
	}
	require.NoError(t, handle.Synced(t.Context()), "a panic does not keep it from syncing")
	r.put(pod{Name: "a", N: 1})
	require.Equal(t, []string{"ADDED a@2 initial", "ADDED c@4 initial", "MODIFIED a@2→5 change"}, poisoned.told())
	require.Len(t, well.told(), 4)

	require.ErrorIs(t, handle.Err(), informer.ErrHandlerPanic)
	errs := r.reported()
	require.Len(t, errs, 1)
	var failure *informer.HandlerError
	require.ErrorAs(t, errs[0], &failure)
	require.Equal(t, "poisoned", failure.Handler)
	require.Equal(t, "ADDED b@3 initial", failure.Notification)
	require.ErrorIs(t, failure, errBad)
	require.ErrorIs(t, failure, backend.ErrPanic)
}

func TestHandlerThatEndsWithItsPanic(t *testing.T) {
	r := newRig(t, nil)
	l := &log{before: func(n informer.Notification[pod]) {
		if n.Key() == "b" {
			panic("no more")
		}
	}}
	handle := r.subscribeLog(l, informer.HandlerOptions{OnPanic: informer.EndHandler})
	well, _ := r.subscribe()
	for _, name := range []string{"a", "b", "c"} {
		r.put(pod{Name: name})
	}
	<-handle.Done()
	<-handle.SyncedSignal()
	require.ErrorIs(t, handle.Err(), informer.ErrHandlerPanic)
	require.Equal(t, []string{"ADDED a@2 initial"}, l.told())
	require.Len(t, well.told(), 3)
}

func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	s, source := busy(t, nil)
	handle, err := s.Subscribe(func(informer.Notification[pod]) { runtime.Goexit() }, informer.HandlerOptions{})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "a"})
	require.NoError(t, err)
	<-handle.Done()
	require.ErrorIs(t, handle.Err(), actors.ErrGoexit)
	rev, err := source.Add(pod{Name: "b"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev), "the informer goes on")
}

func TestClientRow126_StopFromTheHandlerDoesNotWait(t *testing.T) {
	r := newRig(t, nil)
	var handle *informer.Registration
	l := &log{}
	l.before = func(n informer.Notification[pod]) {
		if n.Key() == "b" {
			handle.Stop(informer.Drop)
		}
	}
	handle = r.subscribeLog(l)
	for _, name := range []string{"a", "b", "c"} {
		r.put(pod{Name: name})
	}
	require.Equal(t, []string{"ADDED a@2 initial", "ADDED b@3 change"}, l.told())
	<-handle.Done()
}

func TestClientRow127_RemoveWaitsForTheHandler(t *testing.T) {
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

func TestClientRow128_RemoveAtAnyPointOfItsLife(t *testing.T) {
	r := newRig(t, nil)
	_, neverStarted := r.subscribe()
	require.NoError(t, neverStarted.Remove(t.Context(), informer.Drain))
	_, early := r.subscribe()
	r.put(pod{Name: "a"})
	require.NoError(t, early.Remove(t.Context(), informer.Drain))
	late, handle := r.subscribe()
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	require.Equal(t, []string{"ADDED a@2 replay"}, late.told(), "it was there when the handler was added")
}

func TestClientRow172_AdaptersOfHandlers(t *testing.T) {
	r := newRig(t, nil)
	var lines []string
	onNode := func(o *informer.Object[pod]) bool { return o.Value.Node == "n1" }
	_, err := r.AddEventHandler(informer.FilteringHandler[pod]{Filter: onNode, Handler: informer.HandlerFuncs[pod]{
		AddFunc: func(o *informer.Object[pod], initial bool) {
			if initial {
				lines = append(lines, "initial")
			}
			lines = append(lines, "add "+o.Key)
		},
		UpdateFunc: func(_, o *informer.Object[pod]) { lines = append(lines, "update "+o.Key) },
		DeleteFunc: func(gone informer.Deleted[pod]) { lines = append(lines, "delete "+gone.Key) },
	}}, informer.HandlerOptions{})
	require.NoError(t, err)
	_, err = r.AddEventHandler(informer.HandlerFuncs[pod]{}, informer.HandlerOptions{}) // is safe
	require.NoError(t, err)
	r.put(pod{Name: "a", Node: "n1"})
	r.put(pod{Name: "b", Node: "n2"})
	r.put(pod{Name: "b", Node: "n1"})
	r.put(pod{Name: "b", Node: "n1", N: 1})
	r.put(pod{Name: "b", Node: "n2"})
	r.remove("b")
	r.remove("a")
	require.Equal(t, []string{"initial", "add a", "add b", "update b", "delete b", "delete a"}, lines)
	require.Empty(t, r.reported())
}

func TestHandlersThatAreRefused(t *testing.T) {
	r := newRig(t, nil)
	_, err := r.AddEventHandler(nil, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler)
	_, err = r.Subscribe(nil, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler)
	for field, opts := range map[string]informer.HandlerOptions{
		"HandlerOptions.Buffer":  {Buffer: -1},
		"HandlerOptions.Resync":  {Resync: -1},
		"HandlerOptions.Policy":  {Policy: 9},
		"HandlerOptions.OnPanic": {OnPanic: 9},
	} {
		_, err := r.AddEventHandler(informer.HandlerFuncs[pod]{}, opts)
		require.ErrorIs(t, err, informer.ErrConfig)
		require.ErrorContains(t, err, field)
	}
}

func TestClientRow136_137_DeletedTellsTheKey(t *testing.T) {
	r := newRig(t, nil)
	var gone []informer.Deleted[pod]
	_, err := r.AddEventHandler(informer.HandlerFuncs[pod]{DeleteFunc: func(d informer.Deleted[pod]) { gone = append(gone, d) }}, informer.HandlerOptions{})
	require.NoError(t, err)
	r.put(pod{Name: "a", N: 7})
	rev := r.remove("a")
	require.Len(t, gone, 1)
	require.Equal(t, "a", gone[0].Key)
	require.True(t, gone[0].Known)
	require.False(t, gone[0].Stale)
	require.Equal(t, 7, gone[0].Last.Value.N)
	require.Equal(t, rev, gone[0].Last.Revision)
}
