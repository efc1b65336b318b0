package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

func TestClose_EndsTheContextsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		var cause error
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(),
			Reconcile: func(ctx context.Context, _ string, _ *engine.Object[Pod]) (controller.Result, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return controller.Result{}, ctx.Err()
			},
		})
		require.NoError(t, err)
		_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		synctest.Wait() // until it is being reconciled
		began := time.Now()
		require.NoError(t, c.Close())
		require.ErrorIs(t, cause, controller.ErrClosed)
		require.Zero(t, c.Stats().Failed, "a call that fails because of Close has not failed")
		require.ErrorIs(t, c.Enqueue("ns/a"), controller.ErrClosed)
		require.ErrorIs(t, c.Settle(t.Context(), 1<<60), informer.ErrClosed)
		require.NoError(t, c.Close(), "again")
		require.Zero(t, time.Since(began))
		require.NoError(t, pods.Close())
	})
}

// Close is no reason to panic: a program is told of a panic in the clean-up of a call, too.
func TestClose_ReportsThePanicOfACallThatItEnds(t *testing.T) {
	pods, err := engine.New(podConfig())
	require.NoError(t, err)
	running := make(chan struct{})
	var reported []error
	c, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(), Name: "test", OnError: func(err error) { reported = append(reported, err) },
		Reconcile: func(ctx context.Context, _ string, _ *engine.Object[Pod]) (controller.Result, error) {
			close(running)
			<-ctx.Done()
			panic("oops")
		},
	})
	require.NoError(t, err)
	_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
	require.NoError(t, err)
	<-running
	require.NoError(t, c.Close())
	require.Len(t, reported, 1)
	require.ErrorIs(t, reported[0], usercode.ErrPanic)
	require.ErrorContains(t, reported[0], `controller test: "ns/a" failed, attempt 1, given up: `)
	require.EqualValues(t, 1, c.Stats().Failed)
	require.NoError(t, pods.Close())
}

func TestClose_NamesTheKeysThatHoldItUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		release := make(chan struct{})
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(), Name: "stubborn", Workers: 5,
			Reconcile: func(_ context.Context, key string, _ *engine.Object[Pod]) (controller.Result, error) {
				if key != "ns/quick" {
					<-release
				}
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		for _, name := range []string{"d", "quick", "b", "a", "c"} {
			_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: name})
			require.NoError(t, err)
		}
		synctest.Wait()
		err = c.Close()
		require.ErrorIs(t, err, controller.ErrStillRunning)
		require.EqualError(t, err, "close controller stubborn: still reconciling ns/a, ns/b, ns/c, ns/d: context deadline exceeded")
		close(release)
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
	})
}

// Keys belongs to the controller, though it runs in an informer that others go on using.
func TestClose_WaitsForKeysOfASharedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		shared, err := informer.New(informer.Config[Pod]{Source: pods.Source()})
		require.NoError(t, err)
		release := make(chan struct{})
		c, err := controller.New(controller.Config[Pod]{
			Informer: shared,
			Keys:     func(informer.Notification[Pod]) []string { <-release; return nil },
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		synctest.Wait() // until Keys is called
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		time.Sleep(time.Second) // of virtual time
		require.Empty(t, closed)
		close(release)
		require.NoError(t, <-closed)
		require.NoError(t, shared.Close())
		require.NoError(t, pods.Close())
	})
}

// A program may make and close many controllers over one informer whose source cannot be reached yet.
func TestClose_LeavesNoGoroutineThatWaitsForTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		shared, err := informer.New(informer.Config[Pod]{Source: engine.SourceOf[Pod](slowSource{pods.Source(), nil})})
		require.NoError(t, err)
		synctest.Wait() // until the informer lists
		before := goleak.IgnoreCurrent()
		c, err := controller.New(controller.Config[Pod]{
			Informer: shared,
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, goleak.Find(before))
		require.NoError(t, shared.Close())
		require.NoError(t, pods.Close())
	})
}

// Its host ends with what has held up Close, however long that takes, and nothing else closes
// it: the bubble would not end before the workers of its host.
func TestClose_ThatGaveUpStillEndsTheHost(t *testing.T) {
	for _, stuck := range []string{"Keys", "Source", "Reconcile"} {
		t.Run(stuck, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, err := engine.New(podConfig())
				require.NoError(t, err)
				release := make(chan struct{})
				held := func(in string) {
					if in == stuck {
						<-release
					}
				}
				c, err := controller.New(controller.Config[Pod]{
					Source: engine.SourceOf[Pod](heldSource{pods.Source(), func() { held("Source") }}),
					Keys: func(n informer.Notification[Pod]) []string {
						held("Keys")
						return []string{n.Key()}
					},
					Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
						held("Reconcile")
						return controller.Result{}, nil
					},
				})
				require.NoError(t, err)
				_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
				require.NoError(t, err)
				synctest.Wait()
				require.ErrorIs(t, c.Close(), context.DeadlineExceeded)
				time.Sleep(time.Hour) // of virtual time
				close(release)
				require.NoError(t, pods.Close())
			})
		})
	}
}

// heldSource is a source whose lists first call held, and do not return before it.
type heldSource struct {
	backend.ListerWatcher
	held func()
}

func (s heldSource) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	s.held()
	return s.ListerWatcher.List(ctx, opts)
}

// Nothing but this Close ends the controller's own host, or its informer on another host. The bubble would
// not end before their goroutines.
func TestClose_FromReconcileReturnsAtOnce(t *testing.T) {
	for _, ownHost := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			pods, err := engine.New(podConfig())
			require.NoError(t, err)
			var c *controller.Controller[Pod]
			failed, made := make(chan error, 1), make(chan struct{})
			cfg := controller.Config[Pod]{
				Source: pods.Source(),
				Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
					<-made
					failed <- c.Close()
					return controller.Result{}, nil
				},
			}
			if !ownHost {
				cfg.Host = pods.Host()
			}
			c, err = controller.New(cfg)
			require.NoError(t, err)
			close(made)
			began := time.Now()
			_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
			require.NoError(t, err)
			err = <-failed
			require.ErrorIs(t, err, engine.ErrInHandler)
			var running *controller.CloseError
			require.ErrorAs(t, err, &running)
			require.Equal(t, []string{"ns/a"}, running.Keys)
			require.ErrorIs(t, c.Informer().Err(), informer.ErrClosed)
			require.Zero(t, time.Since(began))
			require.NoError(t, pods.Close())
		})
	}
}

// Queued keys are dropped, in whatever order the actors learn of the end.
func TestClose_DropsWhatIsQueued(t *testing.T) {
	for seed := range uint64(50) {
		host, pods := podsInOrder(t, seed)
		var c *controller.Controller[Pod]
		var calls []string
		var err error
		c, err = controller.New(controller.Config[Pod]{
			Source: pods.Source(), Host: host,
			Reconcile: func(_ context.Context, key string, _ *engine.Object[Pod]) (controller.Result, error) {
				calls = append(calls, key)
				return controller.Result{}, c.Close()
			},
		})
		require.NoError(t, err)
		for _, name := range []string{"a", "b", "c"} {
			_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: name})
			require.NoError(t, err)
			require.NoError(t, c.Enqueue("ns/"+name))
		}
		require.ErrorIs(t, host.Await(t.Context(), nil), engine.ErrIdle)
		require.Len(t, calls, 1)
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
		require.NoError(t, host.Close())
	}
}

// A controller may be closed before its workers have begun. They are gone when Close returns.
func TestClose_AtOnceLeavesNoActor(t *testing.T) {
	pods, err := engine.New(podConfig())
	require.NoError(t, err)
	shared, err := informer.New(informer.Config[Pod]{Source: pods.Source(), Host: pods.Host()})
	require.NoError(t, err)
	require.NoError(t, shared.WaitSynced(t.Context()))
	before := pods.Host().Actors()
	for range 1000 {
		c, err := controller.New(controller.Config[Pod]{
			Informer: shared,
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Equal(t, before, pods.Host().Actors())
	}
	require.NoError(t, shared.Close())
	require.NoError(t, pods.Close())
}

// The host may be closed first, which ends the contexts of Reconcile.
func TestClose_HostFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		var cause error
		cfg := controller.Config[Pod]{
			Source: pods.Source(), Host: host,
			Reconcile: func(ctx context.Context, _ string, _ *engine.Object[Pod]) (controller.Result, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return controller.Result{}, ctx.Err()
			},
		}
		c, err := controller.New(cfg)
		require.NoError(t, err)
		_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		synctest.Wait() // until it is being reconciled
		require.NoError(t, host.Close())
		require.ErrorIs(t, cause, controller.ErrClosed)
		require.ErrorContains(t, cause, "its host is closed")
		require.Equal(t, cause, c.Err())
		require.ErrorIs(t, c.Enqueue("a"), controller.ErrClosed)
		require.NoError(t, c.Close())
		_, err = controller.New(cfg)
		require.ErrorIs(t, err, informer.ErrClosed)
		require.NoError(t, pods.Close())
	})
}

// A New that fails stops what it has started: the host has no more actors than before, and the bubble
// would not end before the workers of a host of its own.
func TestNew_ThatFailsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reconcile := func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
			return controller.Result{}, nil
		}
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		shared, err := informer.New(informer.Config[Pod]{Source: pods.Source(), Host: pods.Host()})
		require.NoError(t, err)
		require.NoError(t, shared.Close())
		before := pods.Host().Actors()
		_, err = controller.New(controller.Config[Pod]{Informer: shared, Reconcile: reconcile})
		require.ErrorIs(t, err, informer.ErrClosed)
		require.Equal(t, before, pods.Host().Actors(), "%v", pods.Host().ActorNames())
		_, err = controller.New(controller.Config[Pod]{Source: pods.Source(), Prefix: "a//b", Reconcile: reconcile})
		require.ErrorIs(t, err, controller.ErrConfig)
		require.NoError(t, pods.Close())
	})
}

func TestCloseError_NamesKeysOnlyIfThereAreAny(t *testing.T) {
	e := controller.CloseError{Controller: "pods", Cause: context.DeadlineExceeded}
	require.EqualError(t, &e, "close controller pods: context deadline exceeded")
	e.Keys = []string{"ns/a", "ns/b"}
	require.EqualError(t, &e, "close controller pods: still reconciling ns/a, ns/b: context deadline exceeded")
}
