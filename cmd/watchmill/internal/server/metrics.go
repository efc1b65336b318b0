package server

import (
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	enginemetrics "github.com/watchmill/watchmill/inspect/prommetrics"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/prommetrics"
)

// metrics are the metrics of the server and of its engines, which --metrics shows.
type metrics struct {
	server  *prommetrics.Metrics
	engines *enginemetrics.Metrics
}

func newMetrics() *metrics {
	return &metrics{prommetrics.New(prommetrics.Options{}), enginemetrics.New(enginemetrics.Options{Resource: resourceOf})}
}

// resourceOf splits an engine's name, which package registry has made, into its parts.
func resourceOf(name string) (group, resource string) {
	resource, group, _ = strings.Cut(name, ".")
	return group, resource
}

// hostConfig returns the configuration of a host with that log, whose engines are measured, unless
// m is nil.
func (m *metrics) hostConfig(log *slog.Logger) engine.HostConfig {
	cfg := engine.HostConfig{Logger: log}
	if m != nil {
		cfg.Metrics = m.engines
	}
	return cfg
}

// addTo configures a server to be measured and to answer /metrics, with others, unless m is nil.
func (m *metrics) addTo(cfg *serve.Config, host *engine.Host, others []prometheus.Collector) error {
	if m == nil {
		return nil
	}
	m.engines.Observe(host)
	page, err := prommetrics.Handler(append(others, m.server, m.engines)...)
	cfg.Metrics, cfg.MetricsHandler = m.server, page
	return err
}

// observe adds the figures of a running server to the metrics, unless m is nil.
func (m *metrics) observe(server *serve.Server) {
	if m != nil {
		m.server.Observe(server)
	}
}
