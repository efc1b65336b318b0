// Package prommetrics shows controllers to Prometheus. Package controller does not need it:
// only programs that import it depend on client_golang.
//
//	metrics := prommetrics.New(prommetrics.Options{})
//	scheduler, err := controller.New(controller.Config[Pod]{Metrics: metrics, …})
//	metrics.Observe(scheduler)
//	prometheus.MustRegister(metrics)
//
//	controller ──Queued, Waited, Delayed, Reconciled──▶ Metrics: counters, histograms ─┐
//	controller ◀──Stats── Collect, at a scrape ────────────────────────────────────────┴──▶ Prometheus
//
// # Names
//
// The metrics have the names, labels and buckets of controller-runtime's and of client-go's
// work queues, so that dashboards work: controller_runtime_* and workqueue_*. Metrics that
// these do not have begin with watchmill_.
//
// # Cost
//
// A call of Reconcile costs a microsecond. The number of time series is bounded by the names of
// controllers: those with the same name are one.
package prommetrics
