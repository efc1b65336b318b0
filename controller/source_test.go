package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// slowSource is a source whose lists are held up until it is released.
type slowSource struct {
	backend.ListerWatcher
	released chan struct{}
}

func (s slowSource) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	select {
	case <-s.released:
		return s.ListerWatcher.List(ctx, opts)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Before the first list each object would seem to be deleted.
func TestController_ReconcilesNoKeyBeforeTheFirstList(t *testing.T) {
	for call, exists := range map[string]bool{"ns/a ": true, "ns/a gone": false} {
		synctest.Test(t, func(t *testing.T) {
			pods, err := engine.New(podConfig())
			require.NoError(t, err)
			if exists {
				_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
				require.NoError(t, err)
			}
			slow := slowSource{pods.Source(), make(chan struct{})}
			calls := make(chan string, 10)
			c, err := controller.New(controller.Config[Pod]{
				Source: engine.SourceOf[Pod](slow),
				Reconcile: func(_ context.Context, key string, pod *engine.Object[Pod]) (controller.Result, error) {
					if pod == nil {
						calls <- key + " gone"
						return controller.Result{}, nil
					}
					calls <- key + " " + pod.Value.Phase
					return controller.Result{}, nil
				},
			})
			require.NoError(t, err)
			require.NoError(t, c.Enqueue("ns/a"))
			synctest.Wait()
			require.Empty(t, calls)
			close(slow.released)
			require.Equal(t, call, <-calls)
			require.NoError(t, c.Settle(t.Context(), 0))
			for len(calls) > 0 { // the change may queue it again
				require.Equal(t, call, <-calls)
			}
			require.NoError(t, c.Close())
			require.NoError(t, pods.Close())
		})
	}
}

// A controller whose informer never syncs reconciles nothing, and can be closed.
func TestController_OfASourceThatIsNeverListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		calls := make(chan string, 10)
		c, err := controller.New(controller.Config[Pod]{
			Source: engine.SourceOf[Pod](slowSource{pods.Source(), nil}),
			Reconcile: func(_ context.Context, key string, _ *engine.Object[Pod]) (controller.Result, error) {
				calls <- key
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		require.NoError(t, c.Enqueue("ns/a"))
		synctest.Wait()
		require.Empty(t, calls)
		require.Equal(t, 1, c.Stats().Queue.Queued)
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
	})
}

// An engine that has never read its storage cannot be listed, and both it and the controller say why. By
// [informer.ErrSource] a program that tells both knows which it is. Later the controller misses nothing.
func TestController_ReportsASourceThatHasReadNothingYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		cfg, told := podConfig(), make(chan error, 100)
		beneath, err := memory.New(cfg.Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(beneath, faulty.Options{})
		down := storage.Add(faulty.Rule{Do: faulty.Fail(errBroken)})
		cfg.Host, cfg.Backend, cfg.OnError = host, storage, func(err error) { told <- err }
		pods, err := engine.New(cfg)
		require.NoError(t, err)
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(), Host: host, OnError: cfg.OnError,
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		synctest.Wait()
		by := map[bool]int{}
		for len(told) > 0 {
			err := <-told
			require.ErrorIs(t, err, errBroken)
			by[errors.Is(err, informer.ErrSource)]++
		}
		require.Equal(t, map[bool]int{false: 1, true: 1}, by)

		down.Remove()
		require.NoError(t, c.Informer().WaitSynced(t.Context()))
		for len(told) > 0 {
			<-told
		}
		storage.Add(faulty.Rule{Do: faulty.Fail(errBroken)})
		storage.BreakWatches(errBroken)
		for range 3 {
			require.NotErrorIs(t, <-told, informer.ErrSource, "its watch of the cache goes on")
		}
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
		require.NoError(t, host.Close())
		require.NoError(t, storage.Close())
	})
}

// On a deterministic host nothing is reconciled too early in any order.
func TestController_BeginsWithTheFirstListInAnyOrder(t *testing.T) {
	for seed := range uint64(50) {
		host, pods := podsInOrder(t, seed)
		_, err := pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		seen := map[string]bool{}
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(), Host: host,
			Reconcile: func(_ context.Context, key string, pod *engine.Object[Pod]) (controller.Result, error) {
				seen[fmt.Sprint(key, " exists: ", pod != nil)] = true
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		require.NoError(t, c.Enqueue("ns/a"))
		require.NoError(t, c.Enqueue("ns/none"))
		require.ErrorIs(t, host.Await(t.Context(), nil), engine.ErrIdle, "the change alone begins, though its key is queued already")
		require.Equal(t, map[string]bool{"ns/a exists: true": true, "ns/none exists: false": true}, seen)
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
		require.NoError(t, host.Close())
	}
}

// A program can tell a controller that has no source any more from one that has nothing to do.
func TestController_SaysThatItsSourceHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		reconciled := make(chan string, 10)
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(),
			Reconcile: func(_ context.Context, key string, _ *engine.Object[Pod]) (controller.Result, error) {
				reconciled <- key
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		require.Equal(t, "ns/a", <-reconciled)
		synctest.Wait()
		select {
		case <-c.Done():
			require.Fail(t, "it has ended, and the source has not")
		default:
		}
		require.NoError(t, c.Err())

		require.NoError(t, pods.Close())
		<-c.Done()
		require.ErrorIs(t, c.Err(), engine.ErrEngineClosed)
		require.ErrorAs(t, c.Err(), new(*informer.SourceError))
		require.NoError(t, c.Enqueue("ns/b"))
		require.Equal(t, "ns/b", <-reconciled)
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.Err(), controller.ErrClosed)
	})
}
