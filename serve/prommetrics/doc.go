// Package prommetrics shows servers to Prometheus. Package serve does not need it: only
// programs that import it depend on client_golang.
//
//	metrics := prommetrics.New(prommetrics.Options{})
//	server, err := serve.New(serve.Config{Resources: kinds, Metrics: metrics})
//	metrics.Observe(server)
//	prometheus.MustRegister(metrics)
//
//	server ──Served, Watching──▶ Metrics: counters, histograms ─┐
//	server ◀──Stats── Collect, at a scrape ─────────────────────┴──▶ Prometheus
//
// [Handler] is a page for [serve.Config].MetricsHandler, with the engines of package
// inspect/prommetrics on it, if they are given.
//
// # Names
//
// Where the Kubernetes API server has a metric of the same meaning, its name, labels
// and buckets are used, so that dashboards work: apiserver_request_total and its
// like. Metrics that it does not have begin with watchmill_.
//
// # Cost
//
// A request costs a few microseconds, an event of a watch some fifty nanoseconds.
// The number of time series is bounded by the kinds that are served: no label has what
// clients make up in paths and methods. A scrape drops the series of kinds that are
// no longer served, such as that of a CustomResourceDefinition which was deleted. If the
// kind comes back, its counters begin at zero.
package prommetrics
