package prommetrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler returns a page with the metrics of the given collectors, of the process and of
// the Go runtime, from a registry of its own. It is for [serve.Config].MetricsHandler. An
// error means that two collectors have the same metric.
func Handler(of ...prometheus.Collector) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	of = append(of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range of {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}), nil
}
