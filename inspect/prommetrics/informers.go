package prommetrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/internal/prom"
	"github.com/watchmill/watchmill/usercode"
)

// informerFigure is one metric of an informer. Informers of one name are one: their figures are
// added.
type informerFigure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*informer.Stats) float64
}

var perInformer = []string{"informer"}

func informerGauge(name, help string, of func(*informer.Stats) float64) informerFigure {
	return informerFigure{prometheus.NewDesc(name, help, perInformer, nil), prometheus.GaugeValue, of}
}

func informerCounter(name, help string, of func(*informer.Stats) uint64) informerFigure {
	return informerFigure{prometheus.NewDesc(name, help, perInformer, nil), prometheus.CounterValue,
		func(s *informer.Stats) float64 { return float64(of(s)) }}
}

var informerFigures = []informerFigure{
	informerGauge("watchmill_informer_objects", "Objects that the informer has.", func(s *informer.Stats) float64 { return float64(s.Objects) }),
	informerGauge("watchmill_informer_quarantined_objects", "Objects for which Transform has failed, and that are kept apart.", func(s *informer.Stats) float64 { return float64(s.Quarantined) }),
	informerGauge("watchmill_informer_handlers", "Handlers.", func(s *informer.Stats) float64 { return float64(s.Handlers) }),
	informerCounter("watchmill_informer_notifications_total", "Changes that handlers were to be notified of, each once however many handlers there are.", func(s *informer.Stats) uint64 { return s.Notifications }),
	informerCounter("watchmill_informer_lists_total", "Times that the source was listed.", func(s *informer.Stats) uint64 { return s.Source.Lists }),
	informerCounter("watchmill_informer_source_errors_total", "Errors of the source.", func(s *informer.Stats) uint64 { return s.Source.Errors }),
}

var handlerLagDesc = prometheus.NewDesc("watchmill_informer_handler_lag_notifications", "Notifications that wait for the handler, the most of the handlers with this name.", []string{"informer", "handler"}, nil)

// ObserveInformer adds an informer to what is collected, until ForgetInformer. Adding it again does
// nothing. One that several leases share must be added by one of them alone, since the figures of
// each are added. It panics with a [*usercode.ConfigError] if i is nil.
func (m *Metrics) ObserveInformer(i informer.Observed) {
	if i == nil {
		panic(&usercode.ConfigError{Field: "i", Problem: "is nil; give an informer that informer.New has returned"})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.informers, i) {
		m.informers = append(m.informers, i)
	}
}

// ForgetInformer removes an informer from what is collected.
func (m *Metrics) ForgetInformer(i informer.Observed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.informers = slices.DeleteFunc(slices.Clone(m.informers), func(o informer.Observed) bool { return o == i })
}

func describeInformers(to chan<- *prometheus.Desc) {
	for _, f := range informerFigures {
		to <- f.desc
	}
	to <- handlerLagDesc
}

// informersOfName are what a scrape has read of the informers of one name.
type informersOfName struct {
	values   []float64
	handlers []informer.HandlerInfo
}

// collectInformers collects all informers.
func (m *Metrics) collectInformers(to chan<- prometheus.Metric) {
	m.mu.Lock()
	informers := m.informers
	m.mu.Unlock()
	read := map[string]*informersOfName{}
	for _, i := range informers {
		name := prom.Label(i.Name())
		if read[name] == nil {
			read[name] = &informersOfName{values: make([]float64, len(informerFigures))}
		}
		read[name].add(i)
	}
	for name, of := range read {
		for at, f := range informerFigures {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, of.values[at], name)
		}
		for handler, lag := range of.slowest(m.options.Watches) {
			to <- prometheus.MustNewConstMetric(handlerLagDesc, prometheus.GaugeValue, float64(lag), name, handler)
		}
	}
}

// add adds the figures and the handlers of an informer.
func (n *informersOfName) add(i informer.Observed) {
	stats := i.Stats()
	for at, f := range informerFigures {
		n.values[at] += f.of(&stats)
	}
	n.handlers = append(n.handlers, i.Handlers()...)
}

// slowest returns the lag of the handlers by name, of at most so many names: those that are the furthest behind.
func (n *informersOfName) slowest(most int) map[string]int {
	slices.SortFunc(n.handlers, func(a, b informer.HandlerInfo) int {
		return cmp.Or(cmp.Compare(b.Lag, a.Lag), cmp.Compare(a.Name, b.Name))
	})
	lag := map[string]int{}
	for _, h := range n.handlers {
		name := prom.Label(h.Name)
		if _, known := lag[name]; !known && len(lag) < most {
			lag[name] = h.Lag
		}
	}
	return lag
}
