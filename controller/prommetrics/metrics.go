package prommetrics

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/internal/prom"
	"github.com/watchmill/watchmill/usercode"
)

// Options configures [New]. The zero value means the defaults.
type Options struct {
	// Buckets are the bounds of the histogram of how long calls of Reconcile take, in seconds
	// and in any order; none means those of controller-runtime, from 5 ms to 60 s.
	Buckets []float64
}

// withDefaults returns o with defaults for what was left out, and the bounds in order, each once.
func (o Options) withDefaults() Options {
	o.Buckets = prom.Ascending(o.Buckets)
	if len(o.Buckets) == 0 {
		o.Buckets = []float64{
			0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
			1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
		}
	}
	return o
}

// Metrics is a [prometheus.Collector] of controllers, and their [controller.Metrics]. All methods
// are safe for concurrent use.
type Metrics struct {
	controller.NoMetrics
	calls     *prometheus.CounterVec
	errors    *prometheus.CounterVec
	panics    *prometheus.CounterVec
	givenUp   *prometheus.CounterVec
	durations *prometheus.HistogramVec
	queued    *prometheus.CounterVec
	delayed   *prometheus.CounterVec
	waits     *prometheus.HistogramVec
	works     *prometheus.HistogramVec

	mu          sync.Mutex
	controllers []observed
}

// observed is an observed controller, with its name as a label.
type observed struct {
	name string
	of   controller.Observed
}

var (
	_ prometheus.Collector = (*Metrics)(nil)
	_ controller.Metrics   = (*Metrics)(nil)
)

// The labels of controller-runtime: both labels of a queue have the controller's name.
var (
	perController = []string{"controller"}
	perQueue      = []string{"name", "controller"}
)

// The values of the label result.
const (
	succeeded = "success"
	again     = "requeue_after"
	failed    = "error"
	ended     = "closed" // which controller-runtime does not have
)

// New returns metrics without a controller; see [Metrics.Observe].
func New(options Options) *Metrics {
	options = options.withDefaults()
	queueTimes := prometheus.ExponentialBuckets(10e-9, 10, 12)
	return &Metrics{
		calls:     prom.Counters("controller_runtime_reconcile_total", "Calls of Reconcile, by result.", "controller", "result"),
		errors:    prom.Counters("controller_runtime_reconcile_errors_total", "Calls of Reconcile that failed, those that panicked among them.", perController...),
		panics:    prom.Counters("controller_runtime_reconcile_panics_total", "Calls of Reconcile that panicked.", perController...),
		givenUp:   prom.Counters("controller_runtime_terminal_reconcile_errors_total", "Failed calls after which the key was given up.", perController...),
		durations: prom.Histograms("controller_runtime_reconcile_time_seconds", "How long calls of Reconcile take.", options.Buckets, perController...),
		queued:    prom.Counters("workqueue_adds_total", "Keys that were added to those to be reconciled.", perQueue...),
		delayed:   prom.Counters("workqueue_retries_total", "Keys that were to be added after a delay.", perQueue...),
		waits:     prom.Histograms("workqueue_queue_duration_seconds", "How long keys are queued until a worker takes them.", queueTimes, perQueue...),
		works:     prom.Histograms("workqueue_work_duration_seconds", "How long workers have keys: as long as Reconcile takes.", queueTimes, perQueue...),
	}
}

// vector is a metric with labels.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

// series are the metrics that count by themselves.
func (m *Metrics) series() []vector {
	return []vector{m.calls, m.errors, m.panics, m.givenUp, m.durations, m.queued, m.delayed, m.waits, m.works}
}

// Observe adds a controller to the collected ones, until Forget. Adding it again does nothing.
// Counters and histograms also require that m is the controller's [controller.Config].Metrics. It
// panics with a [*usercode.ConfigError] if c is nil.
func (m *Metrics) Observe(c controller.Observed) {
	if c == nil {
		panic(&usercode.ConfigError{Field: "c", Problem: "is nil; give a controller that controller.New has returned"})
	}
	name := prom.Label(c.Name())
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(m.controllers, func(o observed) bool { return o.of == c }) {
		m.controllers = append(m.controllers, observed{name, c})
		m.beginAtZero(name)
	}
}

// beginAtZero makes the counters of a controller, so that their first increase is seen.
func (m *Metrics) beginAtZero(name string) {
	for _, result := range []string{succeeded, again, failed} {
		m.calls.WithLabelValues(name, result)
	}
	for _, c := range []*prometheus.CounterVec{m.errors, m.panics, m.givenUp} {
		c.WithLabelValues(name)
	}
	for _, c := range []*prometheus.CounterVec{m.queued, m.delayed} {
		c.WithLabelValues(name, name)
	}
}

// Forget removes a controller from the collected ones and, unless another that is observed has its
// name, the counters and histograms of that name. Close the controller before.
func (m *Metrics) Forget(c controller.Observed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.controllers, func(o observed) bool { return o.of == c })
	if at < 0 {
		return
	}
	name := m.controllers[at].name
	m.controllers = slices.Delete(slices.Clone(m.controllers), at, at+1)
	if slices.ContainsFunc(m.controllers, func(o observed) bool { return o.name == name }) {
		return
	}
	for _, v := range m.series() {
		v.DeletePartialMatch(prometheus.Labels{"controller": name})
	}
}

// Queued implements [controller.Metrics].
func (m *Metrics) Queued(controller string) {
	name := prom.Label(controller)
	m.queued.WithLabelValues(name, name).Inc()
}

// Waited implements [controller.Metrics].
func (m *Metrics) Waited(controller string, waited time.Duration) {
	name := prom.Label(controller)
	m.waits.WithLabelValues(name, name).Observe(waited.Seconds())
}

// Delayed implements [controller.Metrics].
func (m *Metrics) Delayed(controller string) {
	name := prom.Label(controller)
	m.delayed.WithLabelValues(name, name).Inc()
}

// Reconciled implements [controller.Metrics].
func (m *Metrics) Reconciled(name string, call controller.Call) {
	name = prom.Label(name)
	m.durations.WithLabelValues(name).Observe(call.Took.Seconds())
	m.works.WithLabelValues(name, name).Observe(call.Took.Seconds())
	m.calls.WithLabelValues(name, result(call)).Inc()
	var failure *controller.ReconcileError
	if !errors.As(call.Err, &failure) {
		return
	}
	m.errors.WithLabelValues(name).Inc()
	if failure.GivenUp {
		m.givenUp.WithLabelValues(name).Inc()
	}
	if errors.Is(failure, usercode.ErrPanic) || errors.Is(failure, usercode.ErrGoexit) {
		m.panics.WithLabelValues(name).Inc()
	}
}

// result is the label of that name.
func result(call controller.Call) string {
	switch {
	case errors.Is(call.Err, controller.ErrReconcile):
		return failed
	case call.Err != nil:
		return ended
	case call.RequeueAfter > 0:
		return again
	}
	return succeeded
}
