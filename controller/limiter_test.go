package controller_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
)

// exitingLimiter has no delays, and ends the goroutine in the first call of one of its methods.
type exitingLimiter struct {
	queue.RateLimiter[string]
	exit func(method string)
}

func (l exitingLimiter) When(key string, now time.Time) time.Duration {
	l.exit("When")
	return l.RateLimiter.When(key, now)
}

func (l exitingLimiter) Forget(key string) {
	l.exit("Forget")
	l.RateLimiter.Forget(key)
}

// A key is tried again, and is not left with its worker, whichever function of the user ends the
// goroutine.
func TestController_ExitOfTheGoroutineInOnErrorOrTheLimiter(t *testing.T) {
	for _, in := range []string{"OnError", "When", "Forget"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, err := engine.New(podConfig())
				require.NoError(t, err)
				var calls, exits atomic.Int32
				exit := func(function string) {
					if function == in && exits.Add(1) == 1 {
						runtime.Goexit()
					}
				}
				c, err := controller.New(controller.Config[Pod]{
					Source: pods.Source(), Host: pods.Host(),
					Limiter: exitingLimiter{queue.NewExponentialRateLimiter[string](0, 0), exit},
					OnError: func(error) { exit("OnError") },
					Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
						switch calls.Add(1) {
						case 1:
							return controller.Result{}, errBroken
						case 2:
							return controller.Result{RequeueAfter: time.Minute}, nil
						}
						return controller.Result{}, nil
					},
				})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, errors.Join(c.Close(), pods.Close())) })
				_, err = pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
				require.NoError(t, err)
				time.Sleep(time.Hour) // of virtual time
				require.EqualValues(t, 3, calls.Load())
				require.Zero(t, c.Stats().Queue.Running)
				require.Equal(t, [2]uint64{2, 1}, [2]uint64{c.Stats().Reconciled, c.Stats().Failed})
			})
		})
	}
}

// stubbornLimiter panics when it is to forget a key.
type stubbornLimiter struct{ queue.RateLimiter[string] }

func (stubbornLimiter) Forget(string) { panic("cannot forget") }

func TestLimiter_WhosePanicInForgetIsContained(t *testing.T) {
	f := newFixture(t, func(c *controller.Config[Pod]) { c.Limiter = stubbornLimiter{c.Limiter} })
	f.put("a", "1")
	require.Equal(t, []string{"ns/a 1 0s"}, f.called())
	f.put("a", "2")
	require.Equal(t, []string{"ns/a 2 0s"}, f.called(), "the key is not left with the worker")
	require.Equal(t, uint64(2), f.Stats().Reconciled)
}

// panickingLimiter panics when it is asked for a delay.
type panickingLimiter struct{ queue.RateLimiter[string] }

func (panickingLimiter) When(string, time.Time) time.Duration { panic("no delay") }

// With no delay at all, a key that fails would be tried again and again without a pause.
func TestLimiter_WhosePanicInWhenDelaysASecond(t *testing.T) {
	f := newFixture(t, func(c *controller.Config[Pod]) { c.Limiter = panickingLimiter{c.Limiter} })
	failures := 1
	f.reconcile = func(string) (controller.Result, error) {
		if failures--; failures >= 0 {
			return controller.Result{}, errBroken
		}
		return controller.Result{}, nil
	}
	f.put("a", "1")
	require.Equal(t, []string{"ns/a 1 0s"}, f.called())
	require.EqualError(t, f.reported[0], `controller test: "ns/a" failed, attempt 1, again in 1s: broken`)
	require.Empty(t, f.pass(time.Second-1))
	require.Equal(t, []string{"ns/a 1 1s"}, f.pass(1))
}
