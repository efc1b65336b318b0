package controller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/usercode"
)

func TestController_ReconcilesTheStateNotTheHistory(t *testing.T) {
	f := newFixture(t, nil)
	f.put("a", "1")
	f.put("b", "1")
	require.Equal(t, []string{"ns/a 1 0s", "ns/b 1 0s"}, f.called())
	f.put("a", "2")
	f.put("a", "3")
	_, err := f.pods.Delete(t.Context(), "ns/b", engine.DeleteOptions{})
	require.NoError(t, err)
	calls := f.called()
	require.Contains(t, calls, "ns/a 3 0s")
	require.Contains(t, calls, "ns/b gone 0s")
	require.Empty(t, f.called(), "nothing has changed")
	require.EqualValues(t, f.Stats().Reconciled, 2+len(calls))
}

func TestController_TriesAgainAfterGrowingDelays(t *testing.T) {
	f := newFixture(t, nil)
	failures := 3
	f.reconcile = func(string) (controller.Result, error) {
		if failures--; failures >= 0 {
			return controller.Result{}, errBroken
		}
		return controller.Result{}, nil
	}
	f.put("a", "1")
	require.Equal(t, []string{"ns/a 1 0s"}, f.called())
	require.Equal(t, []string{"ns/a 1 1s"}, f.pass(time.Second))
	require.Empty(t, f.pass(time.Second))
	require.Equal(t, []string{"ns/a 1 3s"}, f.pass(time.Second))
	require.Equal(t, []string{"ns/a 1 7s"}, f.pass(4*time.Second))
	require.Empty(t, f.pass(time.Hour), "it has succeeded")
	require.Len(t, f.reported, 3)
	require.ErrorIs(t, f.reported[2], controller.ErrReconcile)
	require.ErrorIs(t, f.reported[2], errBroken)
	require.EqualError(t, f.reported[2], `controller test: "ns/a" failed, attempt 3, again in 4s: broken`)
	require.Equal(t, [2]uint64{1, 3}, [2]uint64{f.Stats().Reconciled, f.Stats().Failed})
}

func TestController_HasALimiterIfItIsGivenNone(t *testing.T) {
	var logs bytes.Buffer
	f := newFixtureOn(t, engine.HostConfig{Logger: slog.New(slog.NewTextHandler(&logs, nil))}, func(c *controller.Config[Pod]) {
		c.Limiter, c.OnError = nil, nil
	})
	f.reconcile = func(string) (controller.Result, error) { return controller.Result{}, errBroken }
	f.put("a", "1")
	require.Equal(t, []string{"ns/a 1 0s"}, f.called())
	var seen []string
	for range 35 {
		seen = append(seen, f.pass(time.Millisecond)...)
	}
	require.Equal(t, []string{"ns/a 1 5ms", "ns/a 1 15ms", "ns/a 1 35ms"}, seen)
	require.Equal(t, 4, bytes.Count(logs.Bytes(), []byte("\n")), "each failure, and nothing else:\n%s", &logs)
}

func TestController_GivesUpUntilTheObjectChanges(t *testing.T) {
	f := newFixture(t, func(c *controller.Config[Pod]) { c.MaxAttempts = 2 })
	f.reconcile = func(string) (controller.Result, error) { return controller.Result{}, errBroken }
	f.put("a", "1")
	require.Len(t, f.called(), 1)
	require.Len(t, f.pass(time.Second), 1)
	require.Empty(t, f.pass(time.Hour))
	require.EqualError(t, f.reported[1], `controller test: "ns/a" failed, attempt 2, given up: broken`)
	require.EqualValues(t, 1, f.Stats().GivenUp)
	f.reported = nil
	f.put("a", "2")
	require.Len(t, f.called(), 1)
	require.ErrorContains(t, f.reported[0], "attempt 1, again in 1s", "the counting begins anew")
}

func TestController_SuccessEndsARowOfFailures(t *testing.T) {
	f := newFixture(t, nil)
	failures := 2
	f.reconcile = func(string) (controller.Result, error) {
		if failures--; failures >= 0 {
			return controller.Result{}, errBroken
		}
		return controller.Result{}, nil
	}
	f.put("a", "1")
	require.Len(t, f.called(), 1)
	require.Len(t, f.pass(time.Second), 1)
	require.Len(t, f.pass(2*time.Second), 1)
	require.EqualValues(t, 1, f.Stats().Reconciled)
	failures, f.reported = 1, nil
	f.put("a", "2")
	require.Len(t, f.called(), 1)
	require.ErrorContains(t, f.reported[0], "attempt 1, again in 1s")
	require.Len(t, f.pass(time.Second), 1)
}

// A log that says neither where a call has panicked nor what follows does not help.
func TestController_LogsFailuresAndWhatFollows(t *testing.T) {
	var lines bytes.Buffer
	f := newFixtureOn(t, engine.HostConfig{Logger: slog.New(slog.NewJSONHandler(&lines, nil))}, func(c *controller.Config[Pod]) { c.MaxAttempts = 2 })
	f.reconcile = func(string) (controller.Result, error) {
		if len(f.calls) == 1 {
			panicInReconcile()
		}
		return controller.Result{}, nil
	}
	logged := func() map[string]any {
		line := map[string]any{}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		lines.Reset()
		return line
	}
	f.put("a", "1")
	f.called()
	line := logged()
	require.Equal(t, "reconcile failed and will be called again", line["msg"])
	require.Equal(t, "ns/a", line["key"])
	require.EqualValues(t, 1, line["attempts"])
	require.EqualValues(t, time.Second, line["pause"])
	require.Contains(t, line["stack"], "panicInReconcile")

	f.reconcile = func(string) (controller.Result, error) { return controller.Result{}, errBroken }
	f.pass(time.Second)
	line = logged()
	require.Equal(t, "reconcile failed, and the key is given up", line["msg"])
	require.EqualValues(t, 2, line["attempts"])
	require.NotContains(t, line, "pause")
	require.NotContains(t, line, "stack")
}

func panicInReconcile() { panic("oops") }

func TestController_PanicIsAnError(t *testing.T) {
	f := newFixture(t, nil)
	f.reconcile = func(key string) (controller.Result, error) {
		if len(f.calls) == 1 {
			panic("oops")
		}
		return controller.Result{}, nil
	}
	f.put("a", "1")
	require.Len(t, f.called(), 1)
	var panicked *usercode.PanicError
	require.ErrorAs(t, f.reported[0], &panicked)
	require.Equal(t, "oops", panicked.Value)
	require.Equal(t, "ns/a", panicked.Key)
	f.calls = []string{"earlier"}
	require.Contains(t, f.pass(time.Second), "ns/a 1 1s")
}

// A worker whose goroutine ends is replaced, and its key tried again.
func TestController_ExitOfTheGoroutine(t *testing.T) {
	pods, err := engine.New(podConfig())
	require.NoError(t, err)
	var calls atomic.Int32
	handled := make(chan string)
	c, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(), Host: pods.Host(), Limiter: queue.NewExponentialRateLimiter[string](0, 0),
		Reconcile: func(_ context.Context, key string, _ *engine.Object[Pod]) (controller.Result, error) {
			if calls.Add(1) == 1 {
				runtime.Goexit()
			}
			handled <- key
			return controller.Result{}, nil
		},
	})
	require.NoError(t, err)
	_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
	require.NoError(t, err)
	require.Equal(t, "ns/a", <-handled)
	require.EqualValues(t, 1, c.Stats().Failed)
	require.NoError(t, c.Close())
	require.NoError(t, pods.Close())
}

// Another worker, which goes on, gets no second one beside it.
func TestController_ExitOfTheGoroutineAddsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		var calls atomic.Int32
		release := make(chan struct{})
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(), Host: pods.Host(), Workers: 2, Limiter: queue.NewExponentialRateLimiter[string](0, 0),
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				if calls.Add(1) == 1 {
					runtime.Goexit()
				}
				<-release
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		for n := range 5 {
			_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: fmt.Sprint(n)})
			require.NoError(t, err)
		}
		synctest.Wait()
		running := c.Stats().Queue.Running
		close(release)
		require.Equal(t, 2, running)
		require.NoError(t, c.Settle(t.Context(), 0))
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
	})
}

func TestController_ComesBackWhenAsked(t *testing.T) {
	f := newFixture(t, func(c *controller.Config[Pod]) { c.Resync = time.Hour })
	f.reconcile = func(string) (controller.Result, error) {
		if len(f.calls) == 1 {
			return controller.Result{RequeueAfter: time.Minute}, nil
		}
		return controller.Result{}, nil
	}
	f.put("a", "1")
	require.Equal(t, []string{"ns/a 1 0s"}, f.called())
	f.calls = []string{"earlier"}
	require.Contains(t, f.pass(time.Minute), "ns/a 1 1m0s")
	require.NoError(t, f.Enqueue("ns/other"))
	require.NoError(t, f.EnqueueAfter("ns/later", time.Second))
	f.calls = []string{"earlier"}
	require.Contains(t, f.called(), "ns/other gone 1m0s")
	f.calls = []string{"earlier"}
	require.Contains(t, f.pass(time.Second), "ns/later gone 1m1s")
	f.calls = []string{"earlier"}
	require.Contains(t, f.pass(time.Hour), "ns/a 1 1h1m1s", "by resync")
}

func TestController_TakesNoDelayBack(t *testing.T) {
	f := newFixture(t, nil)
	f.reconcile = func(string) (controller.Result, error) { return controller.Result{RequeueAfter: 10 * time.Second}, nil }
	f.put("a", "1")
	require.Equal(t, []string{"ns/a 1 0s"}, f.called())
	require.Empty(t, f.pass(5*time.Second))
	f.put("a", "2")
	require.Equal(t, []string{"ns/a 2 5s"}, f.called(), "whose delay ends at 15 s")
	require.Equal(t, []string{"ns/a 2 10s"}, f.pass(5*time.Second))
	require.Empty(t, f.pass(5*time.Second), "a key has one delay")

	g := newFixture(t, func(c *controller.Config[Pod]) { c.MaxAttempts = 2 })
	g.reconcile = func(string) (controller.Result, error) { return controller.Result{}, errBroken }
	g.put("a", "1")
	require.Len(t, g.called(), 1)
	g.put("a", "2")
	require.Len(t, g.called(), 1)
	require.ErrorContains(t, g.reported[1], "attempt 2, given up")
	require.Equal(t, []string{"ns/a 2 1s"}, g.pass(time.Second), "the delay of the first attempt")
	require.ErrorContains(t, g.reported[2], "attempt 1, again in 1s")
}

// A key is reconciled by one worker at a time, and all workers work at once.
func TestController_WorkersShareNoKey(t *testing.T) {
	const workers, keys = 8, 8
	pods, err := engine.New(podConfig())
	require.NoError(t, err)
	var busy [keys]atomic.Bool
	var at sync.WaitGroup // until as many run at once as there are workers
	at.Add(workers)
	var once [keys]sync.Once
	c, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(), Host: pods.Host(), Workers: workers,
		Reconcile: func(_ context.Context, key string, pod *engine.Object[Pod]) (controller.Result, error) {
			var n int
			if _, err := fmt.Sscanf(key, "ns/%d", &n); err != nil {
				return controller.Result{}, err
			}
			if busy[n].Swap(true) {
				return controller.Result{}, errors.New("two workers have it")
			}
			defer busy[n].Store(false)
			once[n].Do(func() { at.Done(); at.Wait() })
			return controller.Result{}, nil
		},
	})
	require.NoError(t, err)
	var last engine.Revision
	for n := range 50 * keys {
		o, err := pods.Put(t.Context(), Pod{Namespace: "ns", Name: fmt.Sprint(n % keys), Phase: fmt.Sprint(n)})
		require.NoError(t, err)
		last = o.Revision
	}
	require.NoError(t, c.Settle(t.Context(), last))
	require.Zero(t, c.Stats().Failed)
	require.NoError(t, c.Close())
	require.NoError(t, pods.Close())
}

func TestNew_RefusesWhatCannotBe(t *testing.T) {
	pods, err := engine.New(podConfig())
	require.NoError(t, err)
	shared, err := informer.New(informer.Config[Pod]{Source: pods.Source(), Host: pods.Host()})
	require.NoError(t, err)
	reconcile := func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
		return controller.Result{}, nil
	}
	for field, cfgs := range map[string][]controller.Config[Pod]{
		"Reconcile":   {{Source: pods.Source()}},
		"Source":      {{Reconcile: reconcile}, {Reconcile: reconcile, Source: pods.Source(), Informer: shared}},
		"Informer":    {{Reconcile: reconcile, Informer: shared, Host: pods.Host()}, {Reconcile: reconcile, Informer: shared, Prefix: "ns"}},
		"Host":        {{Reconcile: reconcile, Source: pods.Source(), Host: &engine.Host{}}},
		"Workers":     {{Reconcile: reconcile, Source: pods.Source(), Workers: -1}, {Reconcile: reconcile, Source: pods.Source(), Workers: math.MaxInt}},
		"MaxAttempts": {{Reconcile: reconcile, Source: pods.Source(), MaxAttempts: -1}},
		"Resync":      {{Reconcile: reconcile, Source: pods.Source(), Resync: -1}},
	} {
		for _, cfg := range cfgs {
			_, err := controller.New(cfg)
			var wrong *engine.ConfigError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, field, wrong.Field)
			require.ErrorIs(t, err, controller.ErrConfig)
		}
	}
	require.NoError(t, shared.Close())
	require.NoError(t, pods.Close())
}
