// Package prommetrics shows engines and informers to Prometheus. These do not need it: only
// programs that import it depend on client_golang. Package controller/prommetrics shows controllers.
//
//	metrics := prommetrics.New(prommetrics.Options{})
//	host, err := engine.NewHost(engine.HostConfig{Metrics: metrics})
//	metrics.Observe(host)
//	metrics.ObserveInformer(pods) // if there are any
//	prometheus.MustRegister(metrics)
//
//	host ──Latency, Waited, Ended──▶ Metrics: histograms, counters ─┐
//	host ◀──Engines: Stats, Watches── Collect, at a scrape ─────────┼──▶ Prometheus
//	informer ◀──Stats, Handlers────── Collect ──────────────────────┘
//
// # Names
//
// Where the Kubernetes API server has a metric of the same meaning, its name and
// labels are used, so that dashboards work: apiserver_watch_cache_*,
// apiserver_terminated_watchers_total, apiserver_cache_list_*,
// apiserver_resource_objects and apiserver_watch_events_dispatch_duration_seconds,
// which has the label stage. Metrics that it does not have begin with watchmill_.
//
// # Cost
//
// A scrape takes about a microsecond for each watch and handler. The number of time series is
// bounded: watches with the same name are one, as are the handlers of an informer, and only the
// names that are the furthest behind have series of their own. A scrape drops the series of engines
// that have ended, such as that of a CustomResourceDefinition which was deleted.
package prommetrics
