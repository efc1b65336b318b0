package prommetrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/controller/prommetrics"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/usercode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pod struct{ Name string }

func Example() {
	ctx := context.Background()
	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	metrics := prommetrics.New(prommetrics.Options{})
	scheduler, err := controller.New(controller.Config[pod]{
		Source: pods.Source(), Host: pods.Host(), Name: "scheduler", Metrics: metrics,
		Reconcile: func(context.Context, string, *engine.Object[pod]) (controller.Result, error) {
			return controller.Result{}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer scheduler.Close()
	metrics.Observe(scheduler)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	web, err := pods.Create(ctx, pod{"web"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = scheduler.Settle(ctx, web.Revision)
	if err != nil {
		fmt.Println(err)
		return
	}
	families, _ := registry.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "controller_runtime_reconcile_total" {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetLabel()[1].GetValue(), m.GetCounter().GetValue())
			}
		}
	}
	// Output:
	// scheduler error 0
	// scheduler requeue_after 0
	// scheduler success 1
}

// fixture is pods on a deterministic host, and metrics of their controllers.
type fixture struct {
	t       *testing.T
	clock   *engine.VirtualClock
	pods    *engine.Engine[pod]
	metrics *prommetrics.Metrics
}

func newFixture(t *testing.T) *fixture {
	clock := engine.NewVirtualClock(time.Unix(0, 0))
	host, err := engine.NewHost(engine.HostConfig{Clock: clock, Executor: engine.NewSeededExecutor(1), Seed: 1})
	require.NoError(t, err)
	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }, Host: host})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, pods.Close())
		require.NoError(t, host.Close())
	})
	return &fixture{t, clock, pods, prommetrics.New(prommetrics.Options{Buckets: []float64{10, 1, 10}})}
}

// controller starts a controller, which calls reconcile with each key.
func (f *fixture) controller(name string, reconcile func(key string) (controller.Result, error)) *controller.Controller[pod] {
	f.t.Helper()
	c, err := controller.New(controller.Config[pod]{
		Source: f.pods.Source(), Host: f.pods.Host(), Name: name, Workers: 2, MaxAttempts: 2, Metrics: f.metrics,
		Limiter: queue.NewExponentialRateLimiter[string](time.Hour, time.Hour),
		Reconcile: func(_ context.Context, key string, _ *engine.Object[pod]) (controller.Result, error) {
			return reconcile(key)
		},
	})
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, c.Close()) })
	return c
}

// shown returns the samples of the metrics with the prefix, as a scrape gets them.
func (f *fixture) shown(prefix string) string {
	f.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(f.t, registry.Register(f.metrics))
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	var samples strings.Builder
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, prefix) {
			samples.WriteString(line)
		}
	}
	return samples.String()
}

func TestMetrics_CountTheCallsByResult(t *testing.T) {
	f := newFixture(t)
	c := f.controller("lamps", func(key string) (controller.Result, error) {
		f.clock.Advance(2 * time.Second)
		switch key {
		case "fails":
			return controller.Result{}, errors.New("broken")
		case "panics":
			panic("broken")
		case "again":
			return controller.Result{RequeueAfter: 24 * time.Hour}, nil
		}
		return controller.Result{}, nil
	})
	f.metrics.Observe(c)
	f.metrics.Observe(c) // has no effect
	for _, key := range []string{"fails", "panics", "again", "works"} {
		require.NoError(t, c.Enqueue(key))
	}
	require.NoError(t, c.Settle(t.Context(), 0))
	f.clock.Advance(time.Hour)
	require.NoError(t, c.Settle(t.Context(), 0))

	require.Equal(t, `controller_runtime_active_workers{controller="lamps"} 0
controller_runtime_max_concurrent_reconciles{controller="lamps"} 2
controller_runtime_reconcile_errors_total{controller="lamps"} 4
controller_runtime_reconcile_panics_total{controller="lamps"} 2
controller_runtime_reconcile_time_seconds_bucket{controller="lamps",le="1"} 0
controller_runtime_reconcile_time_seconds_bucket{controller="lamps",le="10"} 6
controller_runtime_reconcile_time_seconds_bucket{controller="lamps",le="+Inf"} 6
controller_runtime_reconcile_time_seconds_sum{controller="lamps"} 12
controller_runtime_reconcile_time_seconds_count{controller="lamps"} 6
controller_runtime_reconcile_total{controller="lamps",result="error"} 4
controller_runtime_reconcile_total{controller="lamps",result="requeue_after"} 1
controller_runtime_reconcile_total{controller="lamps",result="success"} 1
controller_runtime_terminal_reconcile_errors_total{controller="lamps"} 2
`, f.shown("controller_runtime_"))
	require.Equal(t, `watchmill_controller_delayed_keys{controller="lamps"} 1
watchmill_controller_lag_changes{controller="lamps"} 0
`, f.shown("watchmill_"))
	require.Equal(t, `workqueue_adds_total{controller="lamps",name="lamps"} 6
`, f.shown("workqueue_adds"))
	require.Equal(t, `workqueue_retries_total{controller="lamps",name="lamps"} 3
`, f.shown("workqueue_retries"))
	require.Contains(t, f.shown("workqueue_queue"), `workqueue_queue_duration_seconds_sum{controller="lamps",name="lamps"} 24
`, "one after the other, since they are in one goroutine: 0, 2, 4 and 6 s; the two that failed are due after an hour, and wait for 6 s each")
	require.Contains(t, f.shown("workqueue_work"), `workqueue_work_duration_seconds_sum{controller="lamps",name="lamps"} 12
`)
}

// What waits and runs is read at each scrape, and controllers of one name are one.
func TestMetrics_SumTheControllersOfOneName(t *testing.T) {
	f := newFixture(t)
	var shown string
	first := f.controller("lamps", func(string) (controller.Result, error) {
		f.clock.Advance(3 * time.Second)
		shown = f.shown("workqueue_") + f.shown("controller_runtime_active") + f.shown("controller_runtime_max")
		return controller.Result{}, nil
	})
	second := f.controller("lamps", func(string) (controller.Result, error) { return controller.Result{}, nil })
	f.metrics.Observe(first)
	f.metrics.Observe(second)
	require.NoError(t, second.EnqueueAfter("later", time.Minute))
	require.NoError(t, first.Settle(t.Context(), 0))
	require.NoError(t, first.Enqueue("a"))
	require.NoError(t, first.Settle(t.Context(), 0))
	for _, line := range []string{
		`controller_runtime_active_workers{controller="lamps"} 1`, `controller_runtime_max_concurrent_reconciles{controller="lamps"} 4`,
		`workqueue_depth{controller="lamps",name="lamps"} 0`, `workqueue_unfinished_work_seconds{controller="lamps",name="lamps"} 3`,
		`workqueue_longest_running_processor_seconds{controller="lamps",name="lamps"} 3`,
	} {
		require.Contains(t, shown, line+"\n")
	}
	require.Contains(t, f.shown("watchmill_controller_delayed_keys"), " 1\n")

	f.metrics.Forget(first)
	require.Contains(t, f.shown("controller_runtime_"), `controller_runtime_reconcile_total{controller="lamps",result="success"} 1`)
	f.metrics.Forget(second)
	f.metrics.Forget(second) // has no effect
	require.Empty(t, f.shown("controller_runtime_")+f.shown("workqueue_")+f.shown("watchmill_"))
}

func TestMetrics_CallsThatCloseEndsAreNoErrors(t *testing.T) {
	m := prommetrics.New(prommetrics.Options{})
	m.Reconciled("lamps\xff", controller.Call{Err: controller.ErrClosed})
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP controller_runtime_reconcile_total Calls of Reconcile, by result.
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="lamps`+"\uFFFD"+`",result="closed"} 1
`), "controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total"))
}

// failing is a controller whose statistics panic, as a clock of the user's may.
type failing struct{ controller.Observed }

func (failing) Name() string            { return "failing" }
func (failing) Stats() controller.Stats { panic("broken clock") }

func TestMetrics_PanicFailsTheScrapeAndNotTheProcess(t *testing.T) {
	f := newFixture(t)
	f.metrics.Observe(failing{})
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(f.metrics))
	_, err := registry.Gather()
	require.ErrorContains(t, err, "broken clock")
	f.metrics.Forget(failing{})
	_, err = registry.Gather()
	require.NoError(t, err)
}

func TestMetrics_RefuseNil(t *testing.T) {
	defer func() {
		err, _ := recover().(error)
		require.ErrorIs(t, err, usercode.ErrConfig)
	}()
	prommetrics.New(prommetrics.Options{}).Observe(nil)
}
