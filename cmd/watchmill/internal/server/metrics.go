package server

import (
	"strings"

	enginemetrics "github.com/watchmill/watchmill/inspect/prommetrics"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/prommetrics"
)

// metrics are what --metrics shows: of the server, and of the engines below.
type metrics struct {
	server  *prommetrics.Metrics
	engines *enginemetrics.Metrics
}

func newMetrics() *metrics {
	return &metrics{prommetrics.New(prommetrics.Options{}), enginemetrics.New(enginemetrics.Options{Resource: resourceOf})}
}

// resourceOf takes an engine's name, as registry gives it, apart.
func resourceOf(name string) (group, resource string) {
	resource, group, _ = strings.Cut(name, ".")
	return group, resource
}

// hostConfig is what makes a host whose engines are measured, if m is not nil.
func (m *metrics) hostConfig() engine.HostConfig {
	if m == nil {
		return engine.HostConfig{}
	}
	return engine.HostConfig{Metrics: m.engines}
}

// addTo has a server measured, and answer /metrics, if m is not nil.
func (m *metrics) addTo(cfg *serve.Config, host *engine.Host) error {
	if m == nil {
		return nil
	}
	m.engines.Observe(host)
	page, err := prommetrics.Handler(m.server, m.engines)
	cfg.Metrics, cfg.MetricsHandler = m.server, page
	return err
}

// observe shows the figures of a server, if m is not nil.
func (m *metrics) observe(server *serve.Server) {
	if m != nil {
		m.server.Observe(server)
	}
}
