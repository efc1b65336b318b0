package prommetrics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/internal/prom"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultWatches is how many names of watches have series of their own if
// [Options].Watches is zero.
const DefaultWatches = 50

// Options configures [New]. The zero value means the defaults.
type Options struct {
	// Resource returns the labels group and resource of an engine of that name; nil
	// means no group, and the name as the resource.
	Resource func(engine string) (group, resource string)
	// Watches is how many names of watches have series of their own, for each engine, and how
	// many of handlers, for each informer: those that are the furthest behind. Zero means
	// [DefaultWatches], a negative number none.
	Watches int
	// Buckets are the bounds of the latency histograms, in seconds and in any order; none
	// means from 10 µs to 10 s.
	Buckets []float64
}

// withDefaults returns o with defaults for what was left out, and the buckets in order, each once.
func (o Options) withDefaults() Options {
	if o.Resource == nil {
		o.Resource = func(engine string) (string, string) { return "", engine }
	}
	o.Watches = cmp.Or(o.Watches, DefaultWatches)
	o.Buckets = prom.Ascending(o.Buckets)
	if len(o.Buckets) == 0 {
		o.Buckets = []float64{1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5, 1, 5, 10}
	}
	return o
}

// Metrics is a [prometheus.Collector] of hosts and informers, and the [engine.Metrics] of the
// hosts. All methods are safe for concurrent use.
type Metrics struct {
	engine.NoMetrics
	options Options
	latency *prometheus.HistogramVec
	ends    *prometheus.CounterVec
	waits   map[engine.Wait]*prometheus.HistogramVec

	mu        sync.RWMutex
	hosts     []*engine.Host
	informers []informer.Observed
	seen      map[string]series // the engines that have series, by name
	// shown are the labels of the engines that run. An engine keeps its own as long as it runs:
	// otherwise the counters of one would go on with those of another.
	shown map[claim]series
}

var (
	_ prometheus.Collector = (*Metrics)(nil)
	_ engine.Metrics       = (*Metrics)(nil)
)

// New returns metrics without a host; see [Metrics.Observe].
func New(options Options) *Metrics {
	options = options.withDefaults()
	return &Metrics{
		options: options,
		seen:    map[string]series{},
		shown:   map[claim]series{},
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_watch_events_dispatch_duration_seconds",
			Help:    "Age of the oldest event of a batch, since it was committed, at the stages cached, dispatched and delivered.",
			Buckets: options.Buckets,
		}, []string{"group", "resource", "stage"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "watchmill_watch_ends_total", Help: "Watches that have ended, by reason.",
		}, []string{"group", "resource", "reason"}),
		waits: map[engine.Wait]*prometheus.HistogramVec{
			engine.WaitRead: prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name:    "apiserver_watch_cache_read_wait_seconds",
				Help:    "How long calls waited until the cache was ready, or had reached a revision; those that did not wait are not among them.",
				Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3},
			}, perEngine),
			engine.WaitReady: prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name:    "apiserver_watch_cache_initialization_duration_seconds",
				Help:    "How long it took until the cache was ready, at the start and after each time that it could not serve.",
				Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600},
			}, perEngine),
		},
	}
}

// Observe adds a host's engines to the collected ones, until Forget. Adding it again
// does nothing. Histograms and ends also require that m is the host's Metrics. Once a host is
// observed, all that have m must be: a scrape drops the histograms and ends of engines that
// run on none of the observed hosts. It panics with a [*usercode.ConfigError] if host is nil or
// zero, which otherwise every scrape would do.
func (m *Metrics) Observe(host *engine.Host) {
	if host == nil || engine.ValidateHost("host", host) != nil {
		panic(&usercode.ConfigError{Field: "host", Problem: "is nil or a zero Host; give one that engine.NewHost has returned"})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.hosts, host) {
		m.hosts = append(m.hosts, host)
	}
}

// Forget removes a host's engines from the collected ones.
func (m *Metrics) Forget(host *engine.Host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hosts = slices.DeleteFunc(slices.Clone(m.hosts), func(h *engine.Host) bool { return h == host })
}

// labels returns the labels group and resource of an engine.
func (m *Metrics) labels(engine string) (group, resource string) {
	group, resource = m.options.Resource(engine)
	return prom.Label(group), prom.Label(resource)
}

// Latency implements [engine.Metrics].
func (m *Metrics) Latency(name string, stage engine.Stage, age time.Duration) {
	group, resource := m.labels(name)
	m.latency.WithLabelValues(group, resource, string(stage)).Observe(age.Seconds())
	m.saw(name, series{group, resource})
}

// Ended implements [engine.Metrics].
func (m *Metrics) Ended(name string, end engine.WatchEnd) {
	group, resource := m.labels(name)
	m.ends.WithLabelValues(group, resource, end.Reason()).Inc()
	m.saw(name, series{group, resource})
}

// Waited implements [engine.Metrics].
func (m *Metrics) Waited(name string, wait engine.Wait, took time.Duration) {
	if histogram, known := m.waits[wait]; known {
		group, resource := m.labels(name)
		histogram.WithLabelValues(group, resource).Observe(took.Seconds())
		m.saw(name, series{group, resource})
	}
}

// measured are the metrics that count by themselves.
func (m *Metrics) measured() []prometheus.Collector {
	return []prometheus.Collector{m.latency, m.ends, m.waits[engine.WaitRead], m.waits[engine.WaitReady]}
}

// figure is one metric of an engine.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(engine.View, *engine.Stats) float64
}

var perEngine = []string{"group", "resource"}

func counter(name, help string, of func(*engine.Stats) uint64) figure {
	return figure{prometheus.NewDesc(name, help, perEngine, nil), prometheus.CounterValue,
		func(_ engine.View, s *engine.Stats) float64 { return float64(of(s)) }}
}

func gauge(name, help string, of func(*engine.Stats) float64) figure {
	return figure{prometheus.NewDesc(name, help, perEngine, nil), prometheus.GaugeValue,
		func(_ engine.View, s *engine.Stats) float64 { return of(s) }}
}

var figures = []figure{
	counter("apiserver_watch_cache_events_received_total", "Changes that the cache has applied.", func(s *engine.Stats) uint64 { return s.Events }),
	counter("apiserver_watch_cache_events_dispatched_total", "Changes that were offered to the watches.", func(s *engine.Stats) uint64 { return s.Dispatched }),
	counter("apiserver_watch_cache_initializations_total", "Times that the cache became ready.", func(s *engine.Stats) uint64 { return s.Generation }),
	counter("apiserver_watch_cache_initialization_errors_total", "Failed attempts to list or to watch the backend, each of which left the cache unable to serve.", func(s *engine.Stats) uint64 { return s.Source.Failures }),
	gauge("apiserver_watch_cache_resource_version", "Revision that the cache has reached.", func(s *engine.Stats) float64 { return float64(s.Revision) }),
	{prometheus.NewDesc("apiserver_watch_cache_capacity", "Changes that the window may hold; 0 without a cache.", perEngine, nil), prometheus.GaugeValue, capacity},
	counter("apiserver_terminated_watchers_total", "Watches that were ended for slowness.", func(s *engine.Stats) uint64 { return s.Terminated }),
	counter("apiserver_init_events_total", "Events of initial states that watches have read.", func(s *engine.Stats) uint64 { return s.InitialEvents }),
	counter("watchmill_lists_total", "Lists.", func(s *engine.Stats) uint64 { return s.Lists }),
	gauge("apiserver_resource_objects", "Objects that the cache holds.", func(s *engine.Stats) float64 { return float64(s.Objects) }),
	gauge("watchmill_window_events", "Changes that the window holds.", func(s *engine.Stats) float64 { return float64(s.WindowEvents) }),
	gauge("watchmill_state_bytes", "Estimated memory of the objects.", func(s *engine.Stats) float64 { return float64(s.StateBytes) }),
	gauge("watchmill_window_bytes", "Estimated memory of the window beside the objects.", func(s *engine.Stats) float64 { return float64(s.WindowBytes) }),
	gauge("watchmill_history_bytes", "Estimated memory of the backend's own history beside the window.", func(s *engine.Stats) float64 { return float64(s.HistoryBytes) }),
	gauge("watchmill_ready", "1 if the cache can serve.", func(s *engine.Stats) float64 { return truth(s.Ready) }),
	gauge("watchmill_watches", "Watches that are running.", func(s *engine.Stats) float64 { return float64(s.Watches) }),
	gauge("watchmill_watches_stalled", "Watches that are too far behind.", func(s *engine.Stats) float64 { return float64(s.Stalled) }),
	counter("watchmill_watch_stalls_total", "Times that a watch was called stalled.", func(s *engine.Stats) uint64 { return s.Stalls }),
	counter("watchmill_relists_total", "Times that the state was listed again.", func(s *engine.Stats) uint64 { return s.Relists }),
	counter("watchmill_list_fallbacks_total", "Lists that the backend served since the cache could not.", func(s *engine.Stats) uint64 { return s.Fallbacks }),
	counter("watchmill_read_waits_total", "Calls that waited for the cache.", func(s *engine.Stats) uint64 { return s.Waits }),
	counter("watchmill_failures_total", "Failures of the engine's own parts.", func(s *engine.Stats) uint64 { return s.Failures }),
	counter("watchmill_source_errors_total", "Errors of the backend that the Reflector has met.", func(s *engine.Stats) uint64 { return s.Source.Errors }),
}

func capacity(v engine.View, _ *engine.Stats) float64 {
	return float64(v.Window().MaxEvents)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var resumesDesc = prometheus.NewDesc("watchmill_resumes_total", "Watches that asked for the changes after a revision, by whether those were still known.", []string{"group", "resource", "result"}, nil)

var perWatch = []string{"group", "resource", "watch"}

var (
	lagDesc     = prometheus.NewDesc("watchmill_watch_lag_events", "Events ahead of the consumer, the most of the watches with this name.", perWatch, nil)
	behindDesc  = prometheus.NewDesc("watchmill_watch_behind_seconds", "Age of the oldest event that the consumer has not had, the most of the watches with this name.", perWatch, nil)
	stalledDesc = prometheus.NewDesc("watchmill_watch_stalled", "Watches with this name that are stalled.", perWatch, nil)
)

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, f := range figures {
		to <- f.desc
	}
	describeLists(to)
	describeInformers(to)
	to <- resumesDesc
	to <- lagDesc
	to <- behindDesc
	to <- stalledDesc
	for _, c := range m.measured() {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	hosts := m.hosts
	m.mu.Unlock()
	var running []engine.View
	for _, h := range hosts {
		running = append(running, h.Engines()...)
	}
	m.dropEnded(running)
	used := map[series]bool{}
	for _, r := range running {
		m.collectContained(to, r, used)
	}
	m.collectInformers(to)
	m.dropGone()
	for _, c := range m.measured() {
		c.Collect(to)
	}
}

// collectContained collects one engine. A panic of the user's, in Options.Resource or the
// clock, becomes an error of the scrape: it could end the process.
func (m *Metrics) collectContained(to chan<- prometheus.Metric, r engine.View, used map[series]bool) {
	if err := usercode.Call("collecting metrics", r.Name(), func() { m.collect(to, r, used) }); err != nil {
		to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
}

// series are the labels of an engine's metrics.
type series struct{ group, resource string }

// claim are the labels that an engine has unless another has them already.
type claim struct {
	engine engine.View
	labels series
}

// dropEnded makes the labels of engines that have ended free for others.
func (m *Metrics) dropEnded(running []engine.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.shown, func(by claim, _ series) bool { return !slices.Contains(running, by.engine) })
}

// labelsOf returns the labels by which an engine is shown. If several would have the same, a
// number after the resource distinguishes them.
func (m *Metrics) labelsOf(r engine.View, used map[series]bool) series {
	group, resource := m.labels(r.Name())
	by := claim{r, series{group, resource}}
	m.mu.Lock()
	defer m.mu.Unlock()
	if labels, known := m.shown[by]; known && !used[labels] {
		return labels
	}
	taken := maps.Clone(used)
	for _, labels := range m.shown {
		taken[labels] = true
	}
	labels := by.labels
	for n := 2; taken[labels]; n++ {
		labels.resource = fmt.Sprintf("%s#%d", resource, n)
	}
	m.shown[by] = labels
	return labels
}

// collect collects one engine. used are the labels of those that the scrape has already.
func (m *Metrics) collect(to chan<- prometheus.Metric, r engine.View, used map[series]bool) {
	labels := m.labelsOf(r, used)
	group, resource := labels.group, labels.resource
	used[labels] = true
	stats := r.Stats()
	for _, f := range figures {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.of(r, &stats), group, resource)
	}
	to <- prometheus.MustNewConstMetric(resumesDesc, prometheus.CounterValue, float64(stats.Resumed), group, resource, "resumed")
	to <- prometheus.MustNewConstMetric(resumesDesc, prometheus.CounterValue, float64(stats.ResumesExpired), group, resource, "expired")
	collectLists(to, &stats, group, resource)
	for _, w := range m.slowest(r.Watches()) {
		to <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(w.lag), group, resource, w.name)
		to <- prometheus.MustNewConstMetric(behindDesc, prometheus.GaugeValue, w.behind.Seconds(), group, resource, w.name)
		to <- prometheus.MustNewConstMetric(stalledDesc, prometheus.GaugeValue, float64(w.stalled), group, resource, w.name)
	}
}

// named is the watches of one name.
type named struct {
	name    string
	lag     uint64
	behind  time.Duration
	stalled int
}

// slowest groups the watches by name, and returns the first groups. The watches are
// sorted by how far they are behind.
func (m *Metrics) slowest(watches []engine.WatchInfo) []*named {
	var list []*named
	byName := map[string]*named{}
	for _, w := range watches {
		name := prom.Label(w.Name)
		n := byName[name]
		if n == nil {
			if len(list) >= m.options.Watches {
				continue
			}
			n = &named{name: name}
			byName[name] = n
			list = append(list, n)
		}
		n.lag, n.behind = max(n.lag, w.Lag), max(n.behind, w.Behind)
		if !w.StalledSince.IsZero() {
			n.stalled++
		}
	}
	return list
}
