package prommetrics

import (
	"bytes"
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
	made := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := page{header: w.Header(), code: http.StatusOK}
		made.ServeHTTP(&p, r)
		w.WriteHeader(p.code)
		_, _ = w.Write(p.text.Bytes()) // a client that is gone needs no page
	}), nil
}

// page is an answer that is sent once it is whole: clients that read slowly would keep others from having one made.
type page struct {
	header http.Header
	code   int
	text   bytes.Buffer
}

func (p *page) Header() http.Header            { return p.header }
func (p *page) WriteHeader(code int)           { p.code = code }
func (p *page) Write(text []byte) (int, error) { return p.text.Write(text) }
