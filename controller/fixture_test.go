package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// fixture is a controller of pods on a deterministic host. Each call of Reconcile is
// noted, with the time since the beginning.
type fixture struct {
	t     *testing.T
	clock *engine.VirtualClock
	pods  *engine.Engine[Pod]
	*controller.Controller[Pod]

	start    time.Time
	calls    []string
	reported []error
	// reconcile is what follows a call; nil is success.
	reconcile func(key string) (controller.Result, error)
}

// podsInOrder returns pods on a host that runs everything in the order that the seed decides.
func podsInOrder(t *testing.T, seed uint64) (*engine.Host, *engine.Engine[Pod]) {
	t.Helper()
	host, err := engine.NewHost(engine.HostConfig{Clock: engine.NewVirtualClock(time.Unix(0, 0)), Executor: engine.NewSeededExecutor(seed), Seed: seed})
	require.NoError(t, err)
	cfg := podConfig()
	cfg.Host = host
	pods, err := engine.New(cfg)
	require.NoError(t, err)
	return host, pods
}

func newFixture(t *testing.T, change func(*controller.Config[Pod])) *fixture {
	t.Helper()
	return newFixtureOn(t, engine.HostConfig{}, change)
}

// newFixtureOn is newFixture on a host with more settings than those that make it deterministic.
func newFixtureOn(t *testing.T, on engine.HostConfig, change func(*controller.Config[Pod])) *fixture {
	t.Helper()
	f := &fixture{t: t, start: time.Unix(0, 0)}
	f.clock = engine.NewVirtualClock(f.start)
	on.Clock, on.Executor, on.Seed = f.clock, engine.NewSeededExecutor(1), 1
	host, err := engine.NewHost(on)
	require.NoError(t, err)
	cfg := podConfig()
	cfg.Host, cfg.FirstRevision = host, 1
	f.pods, err = engine.New(cfg)
	require.NoError(t, err)
	c := controller.Config[Pod]{
		Source: f.pods.Source(), Host: host, Name: "test",
		Limiter: queue.NewExponentialRateLimiter[string](time.Second, time.Minute),
		OnError: func(err error) { f.reported = append(f.reported, err) },
		Reconcile: func(_ context.Context, key string, pod *engine.Object[Pod]) (controller.Result, error) {
			phase := "gone"
			if pod != nil {
				phase = pod.Value.Phase
			}
			f.calls = append(f.calls, fmt.Sprint(key, " ", phase, " ", f.clock.Now().Sub(f.start)))
			if f.reconcile == nil {
				return controller.Result{}, nil
			}
			return f.reconcile(key)
		},
	}
	if change != nil {
		change(&c)
	}
	f.Controller, err = controller.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, f.Close())
		require.NoError(t, f.pods.Close())
		require.Zero(t, host.Actors(), "actors outlive the controller: %v", host.ActorNames())
		require.Zero(t, host.Timers(), "timers outlive the controller")
		require.NoError(t, host.Close())
	})
	return f
}

func (f *fixture) put(name, phase string) engine.Revision {
	f.t.Helper()
	o, err := f.pods.Put(f.t.Context(), Pod{Namespace: "ns", Name: name, Phase: phase})
	require.NoError(f.t, err)
	return o.Revision
}

// called settles and returns the calls since the last time.
func (f *fixture) called() []string {
	f.t.Helper()
	require.NoError(f.t, f.Settle(f.t.Context(), 0))
	calls := f.calls
	f.calls = nil
	slices.Sort(calls)
	return calls
}

// pass lets time pass.
func (f *fixture) pass(d time.Duration) []string {
	f.clock.Advance(d)
	return f.called()
}
