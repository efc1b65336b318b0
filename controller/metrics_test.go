package controller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/usercode"
)

// notes are metrics that note what they are told, and call on before that.
type notes struct {
	controller.NoMetrics
	on func(method string)

	mu  sync.Mutex
	all []string
}

func (n *notes) note(method, controller string, about ...any) {
	if n.on != nil {
		n.on(method)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprint(append([]any{controller, ": ", method}, about...)...))
}

func (n *notes) Queued(controller string)  { n.note("queued", controller) }
func (n *notes) Delayed(controller string) { n.note("delayed", controller) }
func (n *notes) Waited(controller string, waited time.Duration) {
	n.note("waited", controller, " ", waited)
}

func (n *notes) Reconciled(controller string, call Call) {
	n.note("reconciled", controller, " ", call.Key, " ", call.Took, " ", call.RequeueAfter, " ", call.Err)
}

type Call = controller.Call

// taken returns the notes since the last time.
func (n *notes) taken() []string {
	all := n.all
	n.all = nil
	return all
}

func measuredBy(m controller.Metrics) func(*controller.Config[Pod]) {
	return func(c *controller.Config[Pod]) { c.Metrics = m }
}

func TestMetrics_TellWhatBecomesOfAKey(t *testing.T) {
	n := &notes{}
	f := newFixture(t, func(c *controller.Config[Pod]) { c.Metrics, c.MaxAttempts = n, 2 })
	f.reconcile = func(string) (controller.Result, error) {
		f.clock.Advance(3 * time.Second)
		return controller.Result{RequeueAfter: time.Minute}, nil
	}
	f.put("a", "new")
	f.called()
	require.Equal(t, []string{"test: queued", "test: waited 0s", "test: delayed", "test: reconciled ns/a 3s 1m0s <nil>"}, n.taken())

	f.reconcile = func(string) (controller.Result, error) { return controller.Result{}, errBroken }
	f.pass(time.Minute)
	require.Equal(t, []string{"test: queued", "test: waited 0s", "test: delayed",
		`test: reconciled ns/a 0s 0s ` + f.reported[0].Error()}, n.taken())
	f.pass(time.Second)
	require.Equal(t, []string{"test: queued", "test: waited 0s",
		`test: reconciled ns/a 0s 0s ` + f.reported[1].Error()}, n.taken(), "it is given up, so it does not come back")
	require.Equal(t, 1, f.Stats().Workers)
}

func TestMetrics_TellHowLongKeysAreQueued(t *testing.T) {
	n := &notes{}
	f := newFixture(t, measuredBy(n))
	f.reconcile = func(string) (controller.Result, error) {
		f.clock.Advance(time.Second)
		return controller.Result{}, nil
	}
	require.NoError(t, f.Enqueue("a"))
	require.NoError(t, f.Enqueue("b"))
	require.NoError(t, f.Enqueue("b")) // is queued already
	f.called()
	require.Equal(t, []string{"test: queued", "test: queued", "test: waited 0s", "test: reconciled a 1s 0s <nil>",
		"test: waited 1s", "test: reconciled b 1s 0s <nil>"}, n.taken())
}

// A call that ends since the controller is closed has not failed.
func TestMetrics_TellWhichCallsCloseHasEnded(t *testing.T) {
	pods, err := engine.New(podConfig())
	require.NoError(t, err)
	defer pods.Close()
	n, runs := &notes{}, make(chan struct{})
	c, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(), Metrics: n, Name: "slow",
		Reconcile: func(ctx context.Context, _ string, _ *engine.Object[Pod]) (controller.Result, error) {
			close(runs)
			<-ctx.Done()
			return controller.Result{}, ctx.Err()
		},
	})
	require.NoError(t, err)
	require.NoError(t, c.Enqueue("a"))
	<-runs
	require.NoError(t, c.Close())
	require.Regexp(t, `^slow: reconciled a \S+ 0s `+controller.ErrClosed.Error()+`$`, n.all[len(n.all)-1])
}

// Metrics are the user's code: a panic in them loses no key.
func TestMetrics_ThatPanicLoseNoKey(t *testing.T) {
	for _, method := range []string{"queued", "waited", "delayed", "reconciled"} {
		t.Run(method, func(t *testing.T) {
			var log bytes.Buffer
			n, panicked := &notes{}, false
			n.on = func(called string) {
				if called == method && !panicked {
					panicked = true
					panic("broken metrics")
				}
			}
			f := newFixtureOn(t, engine.HostConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}, measuredBy(n))
			f.reconcile = func(string) (controller.Result, error) {
				if len(f.calls) == 1 {
					return controller.Result{}, errBroken
				}
				return controller.Result{}, nil
			}
			require.NoError(t, f.Enqueue("a"))
			require.NoError(t, f.Settle(t.Context(), 0))
			f.clock.Advance(time.Minute)
			require.NoError(t, f.Settle(t.Context(), 0))
			require.True(t, panicked)
			require.Equal(t, [2]uint64{1, 1}, [2]uint64{f.Stats().Failed, f.Stats().Reconciled})
			if method == "reconciled" {
				require.NoError(t, f.Stats().Queue.MetricsErr)
				require.Contains(t, log.String(), `msg="metrics failed" controller=test`)
			} else {
				require.ErrorIs(t, f.Stats().Queue.MetricsErr, usercode.ErrPanic)
			}
		})
	}
}

// Metrics that end the goroutine, as t.FailNow does, lose no key either.
func TestMetrics_ThatEndTheGoroutineLoseNoKey(t *testing.T) {
	for _, method := range []string{"waited", "delayed", "reconciled"} {
		t.Run(method, func(t *testing.T) {
			pods, err := engine.New(podConfig())
			require.NoError(t, err)
			n, handled := &notes{}, make(chan string)
			var once sync.Once
			n.on = func(called string) {
				if called == method {
					once.Do(runtime.Goexit)
				}
			}
			var calls atomic.Int32
			c, err := controller.New(controller.Config[Pod]{
				Source: pods.Source(), Host: pods.Host(), Limiter: queue.NewExponentialRateLimiter[string](time.Nanosecond, time.Nanosecond), Metrics: n,
				Reconcile: func(_ context.Context, key string, _ *engine.Object[Pod]) (controller.Result, error) {
					if calls.Add(1) == 1 {
						return controller.Result{}, errBroken
					}
					handled <- key
					return controller.Result{}, nil
				},
			})
			require.NoError(t, err)
			require.NoError(t, c.Enqueue("a"))
			require.Equal(t, "a", <-handled)
			require.NoError(t, c.Close())
			require.NoError(t, pods.Close())
		})
	}
}

// What cannot be measured is zero, and not the centuries since the year one.
func TestMetrics_OfAClockThatFails(t *testing.T) {
	var took []time.Duration
	failing := &clocktest.Failing{Clock: clock.Real()}
	host, err := engine.NewHost(engine.HostConfig{Clock: failing})
	require.NoError(t, err)
	defer host.Close()
	cfg := podConfig()
	cfg.Host = host
	pods, err := engine.New(cfg)
	require.NoError(t, err)
	c, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(), Host: host, Metrics: metricsFunc{&notes{}, func(c Call) { took = append(took, c.Took) }},
		Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
			failing.Fail(clocktest.Now, 0, 0) // it works again when the call ends
			return controller.Result{}, nil
		},
	})
	require.NoError(t, err)
	require.NoError(t, c.Settle(t.Context(), 0))
	failing.Fail(clocktest.Now, 0, math.MaxInt)
	require.NoError(t, c.Enqueue("a"))
	require.NoError(t, c.Settle(t.Context(), 0))
	require.Equal(t, []time.Duration{0}, took)
	require.NoError(t, c.Close())
	require.NoError(t, pods.Close())
}

// metricsFunc are metrics that give each call to a function.
type metricsFunc struct {
	*notes
	reconciled func(Call)
}

func (m metricsFunc) Reconciled(_ string, call Call) { m.reconciled(call) }

func TestMetrics_CallHasTheErrorThatIsReported(t *testing.T) {
	var calls []Call
	f := newFixture(t, measuredBy(metricsFunc{&notes{}, func(c Call) { calls = append(calls, c) }}))
	f.reconcile = func(string) (controller.Result, error) { panic("bad") }
	require.NoError(t, f.Enqueue("a"))
	f.called()
	require.Len(t, calls, 1)
	require.Equal(t, f.reported, []error{calls[0].Err})
	require.True(t, errors.Is(calls[0].Err, controller.ErrReconcile) && errors.Is(calls[0].Err, usercode.ErrPanic))
}
