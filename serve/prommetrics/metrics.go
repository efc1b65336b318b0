package prommetrics

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/internal/prom"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/usercode"
)

// component is what the label of that name has at the API server.
const component = "apiserver"

// Options configures [New]. The zero value means the defaults.
type Options struct {
	// Buckets are the bounds of the histograms of durations, in seconds and in any order;
	// none means those of the API server, from 5 ms to 60 s.
	Buckets []float64
}

// Metrics is a [prometheus.Collector] of servers, and their [serve.Metrics]. All methods
// are safe for concurrent use.
type Metrics struct {
	serve.NoMetrics
	requests      *prometheus.CounterVec
	durations     *prometheus.HistogramVec
	latencies     *prometheus.HistogramVec
	responseSizes *prometheus.HistogramVec
	bodySizes     *prometheus.HistogramVec
	longRunning   *prometheus.GaugeVec
	terminations  *prometheus.CounterVec
	aborts        *prometheus.CounterVec
	rejected      *prometheus.CounterVec
	events        *prometheus.CounterVec
	eventSizes    *prometheus.HistogramVec
	eventBytes    *prometheus.CounterVec
	synced        *prometheus.HistogramVec
	writeStalls   *prometheus.HistogramVec

	mu      sync.RWMutex
	servers []*serve.Server
	// past are the sums of the counters of servers that were forgotten. Without them the totals would
	// go back, which looks like a restart: Prometheus would count all that is left a second time.
	past []float64
	seen map[kind]bool // the kinds that have series
}

var (
	_ prometheus.Collector = (*Metrics)(nil)
	_ serve.Metrics        = (*Metrics)(nil)
)

// shortestLatency is the first bound in seconds that the API server has for latencies,
// which is more than the first it has for durations.
const shortestLatency = 0.05

// stallBounds are the bounds of the histogram of write stalls, in seconds. The last is the
// default of [serve.Limits].WriteStall.
var stallBounds = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30}

// The labels of the API server.
var (
	byVerb     = []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	byResource = []string{"group", "version", "resource"}
)

// New returns metrics without a server; see [Metrics.Observe].
func New(options Options) *Metrics {
	if len(options.Buckets) == 0 {
		options.Buckets = []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}
	}
	m := &Metrics{
		requests: prom.Counters("apiserver_request_total", "Requests, watches when they have ended.",
			"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"),
		durations: prom.Histograms("apiserver_request_duration_seconds", "How long requests were served, watches not among them.", prom.Ascending(options.Buckets),
			"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"),
		latencies: prom.Histograms("apiserver_request_sli_duration_seconds", "How long requests were served, for objectives of latency: without dry runs, and without time in queues, of which there are none.",
			slices.DeleteFunc(prom.Ascending(options.Buckets), func(bound float64) bool { return bound < shortestLatency }), byVerb...),
		responseSizes: prom.Histograms("apiserver_response_sizes", "Bytes of the answers to reads, watches not among them.", prometheus.ExponentialBuckets(1000, 10, 7), byVerb...),
		bodySizes: prom.Histograms("apiserver_request_body_size_bytes", "Bytes of the bodies of requests that have one.",
			prometheus.LinearBuckets(50_000, 100_000, 31), "group", "resource", "verb"),
		longRunning:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "apiserver_longrunning_requests", Help: "Watches that are open."}, byVerb),
		terminations: prom.Counters("apiserver_request_terminations_total", "Requests that the server refused or ended to protect itself.", append(slices.Clone(byVerb), "code")...),
		aborts:       prom.Counters("apiserver_request_aborts_total", "Requests whose connection was broken off, since the answer could not be finished.", byVerb[:6]...),
		rejected:     prom.Counters("watchmill_requests_rejected_total", "Requests that a limit refused or cut off, by limit.", "limit"),
		events:       prom.Counters("apiserver_watch_events_total", "Events that watches were sent.", byResource...),
		eventSizes:   prom.Histograms("apiserver_watch_events_sizes", "Bytes of events that watches were sent.", prometheus.ExponentialBuckets(1024, 2, 8), byResource...),
		eventBytes:   prom.Counters("watchmill_watch_sent_bytes_total", "Bytes of events that watches were sent.", byResource...),
		synced: prom.Histograms("apiserver_watch_list_duration_seconds", "From the request of a watch to the end of its initial state.",
			prom.Ascending(options.Buckets, 90, 120, 180, 300), append(slices.Clone(byResource), "scope")...),
		writeStalls: prom.Histograms("watchmill_write_stall_seconds", "How long watches waited for their connections, by flush.", stallBounds, byResource...),
		past:        make([]float64, len(figures)),
		seen:        map[kind]bool{},
	}
	for _, limit := range serve.AllLimits() {
		m.rejected.WithLabelValues(string(limit)) // zero until then, so that an increase is seen
	}
	return m
}

// Observe adds a server to the collected ones, until Forget. Adding it again does nothing.
// Counters and histograms also require that m is the server's [serve.Config].Metrics. Once a server
// is observed, all that have m must be: a scrape drops the series of kinds that none of the
// observed servers serves. It panics with a [*usercode.ConfigError] if server is nil, which otherwise
// every scrape would do.
func (m *Metrics) Observe(server *serve.Server) {
	if server == nil {
		panic(&usercode.ConfigError{Field: "server", Problem: "is nil; give one that serve.New has returned"})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.servers, server) {
		m.servers = append(m.servers, server)
	}
}

// Forget removes a server from the collected ones, for good. The counters made of its
// [serve.Server.Stats] keep what they have counted, and go on from there. The series of its
// requests go with the kinds that no other server serves: see Observe.
func (m *Metrics) Forget(server *serve.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.servers, server) {
		return
	}
	m.servers = slices.DeleteFunc(slices.Clone(m.servers), func(s *serve.Server) bool { return s == server })
	stats := server.Stats()
	for i, f := range figures {
		if f.kind == prometheus.CounterValue {
			m.past[i] += f.of(&stats)
		}
	}
}

// Served implements [serve.Metrics].
func (m *Metrics) Served(r serve.Measured) {
	code, dry := strconv.Itoa(r.Code), ""
	if r.DryRun {
		dry = "All"
	}
	m.requests.WithLabelValues(r.Verb, dry, r.Group, r.Version, r.Resource, r.Subresource, r.Scope, component, code).Inc()
	if r.Verb != "WATCH" {
		m.durations.WithLabelValues(r.Verb, dry, r.Group, r.Version, r.Resource, r.Subresource, r.Scope, component).Observe(r.Took.Seconds())
	}
	if r.Verb != "WATCH" && !r.DryRun {
		m.latencies.WithLabelValues(verbLabels(r.Endpoint)...).Observe(r.Took.Seconds())
	}
	if r.Verb == "GET" || r.Verb == "LIST" {
		m.responseSizes.WithLabelValues(verbLabels(r.Endpoint)...).Observe(float64(r.ResponseBytes))
	}
	if r.RequestBytes > 0 {
		m.bodySizes.WithLabelValues(r.Group, r.Resource, bodyVerb(r.Verb)).Observe(float64(r.RequestBytes))
	}
	if r.Refused != "" {
		m.rejected.WithLabelValues(string(r.Refused)).Inc()
	}
	if r.Refused != "" || r.TimedOut {
		m.terminations.WithLabelValues(append(verbLabels(r.Endpoint), code)...).Inc()
	}
	if r.Aborted {
		m.aborts.WithLabelValues(verbLabels(r.Endpoint)[:6]...).Inc()
	}
	m.saw(r.Endpoint)
}

// bodyVerb returns the verb as the API server has it in the metric of body sizes alone.
func bodyVerb(verb string) string {
	switch verb {
	case "POST":
		return "create"
	case "PUT":
		return "update"
	case "APPLY":
		return "patch"
	}
	return strings.ToLower(verb)
}

func verbLabels(e serve.Endpoint) []string {
	return []string{e.Verb, e.Group, e.Version, e.Resource, e.Subresource, e.Scope, component}
}

// watching is the metrics of one watch, whose series are looked up once.
type watching struct {
	serve.NoWatchMetrics
	open       prometheus.Gauge
	events     prometheus.Counter
	eventBytes prometheus.Counter
	eventSizes prometheus.Observer
	synced     prometheus.Observer
	stalls     prometheus.Observer
}

// Watching implements [serve.Metrics].
func (m *Metrics) Watching(on serve.Endpoint) serve.WatchMetrics {
	w := &watching{
		open:       m.longRunning.WithLabelValues(verbLabels(on)...),
		events:     m.events.WithLabelValues(on.Group, on.Version, on.Resource),
		eventBytes: m.eventBytes.WithLabelValues(on.Group, on.Version, on.Resource),
		eventSizes: m.eventSizes.WithLabelValues(on.Group, on.Version, on.Resource),
		synced:     m.synced.WithLabelValues(on.Group, on.Version, on.Resource, on.Scope),
		stalls:     m.writeStalls.WithLabelValues(on.Group, on.Version, on.Resource),
	}
	w.open.Inc()
	m.saw(on)
	return w
}

func (w *watching) Sent(bytes int) {
	w.events.Inc()
	w.eventBytes.Add(float64(bytes))
	w.eventSizes.Observe(float64(bytes))
}

func (w *watching) Synced(took time.Duration) { w.synced.Observe(took.Seconds()) }

func (w *watching) Written(took time.Duration) { w.stalls.Observe(took.Seconds()) }

func (w *watching) Ended() { w.open.Dec() }

// figure is one metric that a scrape reads from the servers, as their sum.
type figure struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	of     func(*serve.Stats) float64
	labels []string
}

var inFlight = prometheus.NewDesc("apiserver_current_inflight_requests", "Requests that are being served, watches not among them.", []string{"request_kind"}, nil)

var figures = []figure{
	{inFlight, prometheus.GaugeValue, func(s *serve.Stats) float64 { return float64(s.InFlight - s.InFlightWrites) }, []string{"readOnly"}},
	{inFlight, prometheus.GaugeValue, func(s *serve.Stats) float64 { return float64(s.InFlightWrites) }, []string{"mutating"}},
	{plain("watchmill_arriving_requests", "Writes whose bodies are being read, which are not in flight yet."), prometheus.GaugeValue,
		func(s *serve.Stats) float64 { return float64(s.Arriving) }, nil},
	{plain("watchmill_departing_requests", "Answers that are sent while their requests are not in flight: of writes, of reads that have made room for others, and over HTTP/2 of refusals and health checks."), prometheus.GaugeValue,
		func(s *serve.Stats) float64 { return float64(s.Departing) }, nil},
	{plain("watchmill_connections_refused_total", "Connections that were closed since their address had too many."), prometheus.CounterValue,
		func(s *serve.Stats) float64 { return float64(s.RefusedConnections) }, nil},
	{plain("watchmill_encode_cache_hits_total", "Objects in answers and events whose encoding was kept."), prometheus.CounterValue,
		func(s *serve.Stats) float64 { return float64(s.EncodingHits) }, nil},
	{plain("watchmill_encode_cache_misses_total", "Objects in answers and events that had to be encoded."), prometheus.CounterValue,
		func(s *serve.Stats) float64 { return float64(s.EncodingMisses) }, nil},
	{plain("watchmill_encode_cache_bytes", "Bytes that are kept of encoded objects."), prometheus.GaugeValue,
		func(s *serve.Stats) float64 { return float64(s.EncodingBytes) }, nil},
}

func plain(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

// collectors are the metrics that count by themselves.
func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.requests, m.durations, m.latencies, m.responseSizes, m.bodySizes, m.longRunning, m.terminations, m.aborts, m.rejected,
		m.events, m.eventSizes, m.eventBytes, m.synced, m.writeStalls,
	}
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
	for _, f := range figures[1:] { // the first two have one description
		to <- f.desc
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.dropGone()
	for _, c := range m.collectors() {
		c.Collect(to)
	}
	m.mu.Lock()
	servers, sums := m.servers, slices.Clone(m.past)
	m.mu.Unlock()
	for _, s := range servers {
		stats := s.Stats()
		for i := range figures {
			sums[i] += figures[i].of(&stats)
		}
	}
	for i, f := range figures {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, sums[i], f.labels...)
	}
}
