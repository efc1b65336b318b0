package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend"
)

// settleOnce returns what Settle returns, which must wait until release is closed.
func settleOnce(t *testing.T, c *controller.Controller[Pod], release chan struct{}) error {
	t.Helper()
	settled := make(chan error, 1)
	go func() { settled <- c.Settle(t.Context(), 0) }()
	time.Sleep(time.Second) // of virtual time
	require.Empty(t, settled)
	close(release)
	return <-settled
}

// Settle does not report success for a source that has never been read.
func TestSettle_FailsWhileTheSourceCannotBeListed(t *testing.T) {
	f := newFixture(t, func(c *controller.Config[Pod]) {
		c.Source = engine.SourceOf[Pod](brokenSource{c.Source})
	})
	require.ErrorIs(t, f.Settle(t.Context(), 0), engine.ErrIdle)
	require.ErrorIs(t, f.Settle(t.Context(), 0), errBroken)
}

// brokenSource is a source whose lists fail.
type brokenSource struct{ backend.ListerWatcher }

func (brokenSource) List(context.Context, backend.ListOptions) (*backend.List, error) {
	return nil, errBroken
}

// What has arrived before the source ended is still reconciled.
func TestSettle_WaitsAfterTheSourceHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		release := make(chan struct{})
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(),
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				<-release
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		synctest.Wait() // until it is being reconciled
		require.NoError(t, pods.Close())
		<-c.Done()
		err = settleOnce(t, c, release)
		require.ErrorIs(t, err, engine.ErrEngineClosed)
		require.Equal(t, c.Err(), err)
		require.EqualValues(t, 1, c.Stats().Reconciled)
		require.NoError(t, c.Close())
	})
}

// The informer has ended and is about to tell its handlers, of which none is behind.
func TestSettle_SaysWhyTheSourceHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		ended, release := make(chan struct{}), make(chan struct{})
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(),
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				return controller.Result{}, nil
			},
			OnError: func(err error) {
				var failed *informer.SourceError
				if errors.As(err, &failed) && failed.Final {
					close(ended)
					<-release
				}
			},
		})
		require.NoError(t, err)
		require.NoError(t, c.Settle(t.Context(), 0))
		require.NoError(t, pods.Close())
		<-ended
		require.ErrorIs(t, settleOnce(t, c, release), engine.ErrEngineClosed)
		require.NoError(t, c.Close())
	})
}

// A lease that is released ends the handler of its controller, though the informer goes on. What
// has arrived before is still reconciled.
func TestSettle_WaitsAfterTheLeaseOfItsInformerWasReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		var shared informer.Factory
		acquire := func() *informer.Lease[Pod] {
			lease, err := informer.Acquire(&shared, "pods", func() informer.Config[Pod] { return informer.Config[Pod]{Source: pods.Source()} })
			require.NoError(t, err)
			return lease
		}
		released, other := acquire(), acquire()
		release := make(chan struct{})
		c, err := controller.New(controller.Config[Pod]{
			Informer: released.SharedInformer,
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				<-release
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		synctest.Wait() // until it is being reconciled
		require.NoError(t, released.Close())
		err = settleOnce(t, c, release)
		require.ErrorIs(t, err, informer.ErrRemoved)
		require.Equal(t, c.Err(), err)
		require.EqualValues(t, 1, c.Stats().Reconciled)
		require.NoError(t, c.Close())
		require.NoError(t, other.Close())
		require.NoError(t, pods.Close())
	})
}

// The informer is shared and runs on, and what was queued is dropped.
func TestSettle_EndsWithTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		shared, err := informer.New(informer.Config[Pod]{Source: pods.Source()})
		require.NoError(t, err)
		c, err := controller.New(controller.Config[Pod]{
			Informer: shared,
			Reconcile: func(ctx context.Context, _ string, _ *engine.Object[Pod]) (controller.Result, error) {
				<-ctx.Done()
				return controller.Result{}, ctx.Err()
			},
		})
		require.NoError(t, err)
		_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		last, err := pods.Create(t.Context(), Pod{Namespace: "ns", Name: "b"})
		require.NoError(t, err)
		settled := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			settled <- c.Settle(ctx, last.Revision)
		}()
		time.Sleep(time.Second) // of virtual time
		require.Empty(t, settled)
		require.NoError(t, c.Close())
		require.ErrorIs(t, <-settled, controller.ErrClosed)
		require.ErrorIs(t, c.Settle(t.Context(), 0), controller.ErrClosed)
		require.NoError(t, shared.Close())
		require.NoError(t, pods.Close())
	})
}

// A caller that has waited long enough is let go, however long a key takes.
func TestSettle_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		release := make(chan struct{})
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(), Host: pods.Host(),
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				<-release
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		last, err := pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, c.Settle(ctx, last.Revision), context.DeadlineExceeded)
		close(release)
		require.NoError(t, c.Settle(t.Context(), last.Revision))
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
	})
}

// The informer has the change, but the controller's handler is not done with it.
func TestSettle_WaitsForTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		blocked := make(chan struct{})
		reconciled := make(chan string, 1)
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(), Host: pods.Host(),
			Keys: func(n informer.Notification[Pod]) []string {
				<-blocked
				return []string{n.Key()}
			},
			Reconcile: func(_ context.Context, key string, _ *engine.Object[Pod]) (controller.Result, error) {
				reconciled <- key
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		require.NoError(t, c.Settle(t.Context(), 0))
		o, err := pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		settled := make(chan error, 1)
		go func() { settled <- c.Settle(t.Context(), o.Revision) }()
		time.Sleep(time.Second) // of virtual time
		require.Empty(t, settled)
		close(blocked)
		require.NoError(t, <-settled)
		require.Equal(t, "ns/a", <-reconciled)
		synctest.Wait()
		require.Equal(t, 1, c.Informer().Stats().Handlers, "Settle leaves none behind")
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
	})
}

// Nothing moves the host's clock, and no key is reconciled after the handler is done.
func TestSettle_DoesNotNeedTheHostsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{Clock: engine.NewVirtualClock(time.Unix(0, 0))})
		require.NoError(t, err)
		cfg := podConfig()
		cfg.Host = host
		pods, err := engine.New(cfg)
		require.NoError(t, err)
		release := make(chan struct{})
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(), Host: host,
			Keys: func(informer.Notification[Pod]) []string { <-release; return nil },
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		last, err := pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		settled := make(chan error, 1)
		go func() { settled <- c.Settle(t.Context(), last.Revision) }()
		synctest.Wait()
		require.Empty(t, settled)
		close(release)
		require.NoError(t, <-settled)
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
		require.NoError(t, host.Close())
	})
}

func TestSettle_WaitsForTheRevision(t *testing.T) {
	f := newFixture(t, nil)
	at := f.put("a", "new")
	require.NoError(t, f.Settle(t.Context(), at))
	require.ErrorIs(t, f.Settle(t.Context(), at+1), engine.ErrIdle, "nothing has that revision yet")
	require.NoError(t, f.Settle(t.Context(), f.put("a", "newer")))
}
