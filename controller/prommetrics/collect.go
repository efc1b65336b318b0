package prommetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/usercode"
)

// figure is a metric that is read from the statistics of controllers.
type figure struct {
	desc *prometheus.Desc
	// labels is how many labels have the controller's name.
	labels int
	of     func(*controller.Stats) float64
	// merge makes one of the figures of two controllers of one name.
	merge func(a, b float64) float64
}

func sum(a, b float64) float64 { return a + b }

func largest(a, b float64) float64 { return max(a, b) }

func gauge(name, help string, labels []string, of func(*controller.Stats) float64) figure {
	return figure{prometheus.NewDesc(name, help, labels, nil), len(labels), of, sum}
}

func maximum(name, help string, labels []string, of func(*controller.Stats) float64) figure {
	return figure{prometheus.NewDesc(name, help, labels, nil), len(labels), of, largest}
}

var figures = []figure{
	gauge("controller_runtime_max_concurrent_reconciles", "How many calls of Reconcile may run at once.", perController,
		func(s *controller.Stats) float64 { return float64(s.Workers) }),
	gauge("controller_runtime_active_workers", "Calls of Reconcile that run.", perController,
		func(s *controller.Stats) float64 { return float64(s.Queue.Running) }),
	gauge("workqueue_depth", "Keys that wait for a worker.", perQueue,
		func(s *controller.Stats) float64 { return float64(s.Queue.Queued) }),
	gauge("workqueue_unfinished_work_seconds", "The sum of how long the calls that run have been running.", perQueue,
		func(s *controller.Stats) float64 { return s.Queue.Unfinished.Seconds() }),
	maximum("workqueue_longest_running_processor_seconds", "How long the longest of the calls that run has been running.", perQueue,
		func(s *controller.Stats) float64 { return s.Queue.Longest.Seconds() }),
	gauge("watchmill_controller_delayed_keys", "Keys that wait for their delay.", perController,
		func(s *controller.Stats) float64 { return float64(s.Queue.Delayed) }),
	gauge("watchmill_controller_lag_changes", "Changes of objects whose keys have not been queued yet.", perController,
		func(s *controller.Stats) float64 { return float64(s.Lag) }),
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, f := range figures {
		to <- f.desc
	}
	for _, c := range m.series() {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	controllers := m.controllers
	m.mu.Unlock()
	read := map[string][]float64{}
	for _, c := range controllers {
		// A panic, as of the user's clock, becomes an error of the scrape: it could end the process.
		if err := usercode.Call("Controller.Stats", c.name, func() { add(read, c) }); err != nil {
			to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		}
	}
	for name, values := range read {
		labels := []string{name, name}
		for i, f := range figures {
			to <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, values[i], labels[:f.labels]...)
		}
	}
	for _, c := range m.series() {
		c.Collect(to)
	}
}

// add adds the figures of a controller to those that were read of others of its name.
func add(read map[string][]float64, c observed) {
	stats := c.of.Stats()
	before := read[c.name]
	values := make([]float64, len(figures))
	for i, f := range figures {
		values[i] = f.of(&stats)
		if before != nil {
			values[i] = f.merge(before[i], values[i])
		}
	}
	read[c.name] = values
}
