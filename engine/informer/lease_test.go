package informer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
)

// twoLeases returns two leases of one informer of a source.
func twoLeases(t *testing.T, f *informer.Factory, source *enginetest.Source[pod]) (first, second *informer.Lease[pod]) {
	t.Helper()
	configure := func() informer.Config[pod] { return informer.Config[pod]{Source: engine.SourceOf[pod](source)} }
	first, err := informer.Acquire(f, "pods", configure)
	require.NoError(t, err)
	second, err = informer.Acquire(f, "pods", configure)
	require.NoError(t, err)
	return first, second
}

func TestLease_EndsTheHandlersThatWereAddedThroughIt(t *testing.T) {
	for name, end := range map[string]func(*informer.Lease[pod]) error{
		"close": (*informer.Lease[pod]).Close,
		"stop":  func(lease *informer.Lease[pod]) error { lease.Stop(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, nil) // for its host
			source := enginetest.NewSource(podConfig())
			first, second := twoLeases(t, &informer.Factory{Host: r.host}, source)
			var own, others recorder
			added := 0
			_, err := first.Subscribe(own.handle, informer.HandlerOptions{})
			require.NoError(t, err)
			_, err = first.AddEventHandler(informer.HandlerFuncs[pod]{AddFunc: func(*informer.Object[pod], bool) { added++ }}, informer.HandlerOptions{})
			require.NoError(t, err)
			_, err = second.Subscribe(others.handle, informer.HandlerOptions{})
			require.NoError(t, err)
			_, err = source.Add(pod{Name: "a"})
			require.NoError(t, err)
			r.executor.Run()
			require.Len(t, own.recorded(), 1)
			require.Len(t, others.recorded(), 1)
			require.Equal(t, 1, added)

			require.NoError(t, end(first))
			_, err = source.Add(pod{Name: "b"})
			require.NoError(t, err)
			r.executor.Run()
			require.Empty(t, own.recorded())
			require.Len(t, others.recorded(), 1)
			require.Equal(t, 1, added)
			require.Equal(t, 1, second.Stats().Handlers)
			_, err = first.Subscribe(own.handle, informer.HandlerOptions{})
			require.ErrorIs(t, err, informer.ErrClosed)
			require.NoError(t, second.Close())
			require.NoError(t, source.Close())
		})
	}
}

// The other lease does not wait for a handler that is not its own.
func TestLease_CloseNamesItsHandlerThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSource(podConfig())
		first, second := twoLeases(t, new(informer.Factory), source)
		stuck, other := newGate(), newGate()
		_, err := first.Subscribe(stuck.handle, informer.HandlerOptions{Name: "stuck"})
		require.NoError(t, err)
		_, err = second.Subscribe(other.handle, informer.HandlerOptions{Name: "other"})
		require.NoError(t, err)
		_, err = source.Add(pod{Name: "a"})
		require.NoError(t, err)
		<-stuck.entered
		<-other.entered

		began := time.Now()
		err = first.Close()
		require.ErrorIs(t, err, informer.ErrStillRunning)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "stuck")
		require.NotContains(t, err.Error(), "other")
		require.Equal(t, first.Host().CloseTimeout(), time.Since(began))
		require.NoError(t, second.Err())
		close(stuck.open)
		require.NoError(t, first.Close())
		close(other.open)
		require.NoError(t, second.Close())
		require.NoError(t, source.Close())
	})
}

func TestLease_CloseFromItsHandlerDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSource(podConfig())
		first, second := twoLeases(t, new(informer.Factory), source)
		var failed error
		handle, err := first.Subscribe(func(informer.Notification[pod]) { failed = first.Close() }, informer.HandlerOptions{Name: "closing"})
		require.NoError(t, err)
		began := time.Now()
		_, err = source.Add(pod{Name: "a"})
		require.NoError(t, err)
		<-handle.Done()
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, failed, engine.ErrInHandler)
		require.ErrorContains(t, failed, "closing")
		require.NoError(t, first.Close())
		require.NoError(t, second.Err())
		require.NoError(t, second.Close())
		require.NoError(t, source.Close())
	})
}

func TestLease_CloseFromItsHandlerNamesNoneThatIsIdle(t *testing.T) {
	r := newFixture(t, nil) // for its host
	source := enginetest.NewSource(podConfig())
	first, second := twoLeases(t, &informer.Factory{Host: r.host}, source)
	_, err := first.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{Name: "idle"})
	require.NoError(t, err)
	var failed error
	_, err = first.Subscribe(func(informer.Notification[pod]) { failed = first.Close() }, informer.HandlerOptions{Name: "closing"})
	require.NoError(t, err)
	_, err = source.Add(pod{Name: "a"})
	require.NoError(t, err)
	r.executor.Run()
	var running *informer.CloseError
	require.ErrorAs(t, failed, &running)
	require.Equal(t, []string{"closing"}, running.Handlers)
	require.NoError(t, second.Close())
	require.NoError(t, source.Close())
}

func TestLease_HandlersAddedWhileItIsClosedEnd(t *testing.T) {
	source := enginetest.NewSource(podConfig())
	first, second := twoLeases(t, new(informer.Factory), source)
	var adding sync.WaitGroup
	begun := make(chan struct{}, 4)
	for range cap(begun) {
		adding.Go(func() {
			var added []*informer.Registration
			for {
				handle, err := first.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
				if err != nil {
					if !errors.Is(err, informer.ErrClosed) {
						t.Error(err)
					}
					break
				}
				switch added = append(added, handle); len(added) {
				case 1:
					begun <- struct{}{}
				case 100:
					<-added[0].Done() // the next is refused
				}
			}
			for _, handle := range added {
				<-handle.Done()
				if err := handle.Err(); !errors.Is(err, informer.ErrRemoved) {
					t.Error(err)
				}
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	require.NoError(t, first.Close())
	adding.Wait()
	require.NoError(t, second.Err())
	require.NoError(t, second.Close())
	require.NoError(t, source.Close())
}

// The configuration of another informer may add a handler through a lease while that is closed.
func TestLease_IsClosedWhileAConfigurationAddsAHandler(t *testing.T) {
	source := enginetest.NewSource(podConfig())
	var f informer.Factory
	first, second := twoLeases(t, &f, source)
	var closing sync.WaitGroup
	other, err := informer.Acquire(&f, "other", func() informer.Config[pod] {
		closing.Go(func() {
			if err := first.Close(); err != nil {
				t.Error(err)
			}
		})
		for { // until the lease is being closed
			handle, err := first.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
			if err != nil {
				break
			}
			handle.Stop(informer.Drop)
			time.Sleep(time.Millisecond)
		}
		return informer.Config[pod]{Source: engine.SourceOf[pod](source)}
	})
	require.NoError(t, err)
	closing.Wait()
	require.NoError(t, other.Close())
	require.NoError(t, second.Close())
	require.NoError(t, source.Close())
}
