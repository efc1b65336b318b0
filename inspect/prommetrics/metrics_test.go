package prommetrics_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/inspect/prommetrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pod struct{ Name string }

func config(host *engine.Host, name string) engine.Config[pod] {
	return engine.Config[pod]{Key: func(p pod) string { return p.Name }, Host: host, Name: name, FirstRevision: 1}
}

func Example() {
	ctx := context.Background()
	metrics := prommetrics.New(prommetrics.Options{})
	host, err := engine.NewHost(engine.HostConfig{Metrics: metrics})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()
	metrics.Observe(host)
	metrics.Observe(host) // has no effect
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }, Host: host, Name: "pods"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	w, _ := pods.Watch(ctx, engine.WatchOptions{Name: "billing"})
	_, _ = pods.Create(ctx, pod{"web"})
	_, _ = w.Next(ctx)

	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "watchmill_watch_lag_events" {
			m := f.GetMetric()[0]
			fmt.Println(f.GetName(), m.GetLabel()[2].GetValue(), m.GetGauge().GetValue())
		}
	}
	// Output: watchmill_watch_lag_events billing 0
}

// simulated returns a registry over a deterministic host, which runs an engine of
// pods with a watch that is stuck, and lets time pass.
func simulated(t *testing.T, options prommetrics.Options) (*prometheus.Registry, *engine.Engine[pod], *engine.VirtualClock) {
	metrics := prommetrics.New(options)
	clock := enginetest.NewVirtualClock()
	host, err := engine.NewHost(engine.HostConfig{Clock: clock, Executor: engine.NewSeededExecutor(1), Metrics: metrics})
	require.NoError(t, err)
	metrics.Observe(host)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	e, err := engine.New(config(host, "pods"))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		require.NoError(t, host.Close())
	})
	return registry, e, clock
}

func TestMetrics_ShowTheSlowWatch(t *testing.T) {
	registry, e, clock := simulated(t, prommetrics.Options{Buckets: []float64{1, 10}})
	ctx := t.Context()
	stuck, err := e.Watch(ctx, engine.WatchOptions{Name: "stuck", Buffer: 1})
	require.NoError(t, err)
	prompt, err := e.Watch(ctx, engine.WatchOptions{Name: "prompt"})
	require.NoError(t, err)
	var last engine.Revision
	for i := range 3 {
		o, err := e.Create(ctx, pod{fmt.Sprint(i)})
		require.NoError(t, err)
		last = o.Revision
	}
	require.NoError(t, e.WaitForRevision(ctx, last))
	clock.Advance(3e9)
	for prompt.Lag() > 0 {
		_, err := prompt.Next(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP watchmill_watch_behind_seconds Age of the oldest event that the consumer has not had, the most of the watches with this name.
# TYPE watchmill_watch_behind_seconds gauge
watchmill_watch_behind_seconds{group="",resource="pods",watch="prompt"} 0
watchmill_watch_behind_seconds{group="",resource="pods",watch="stuck"} 3
# HELP watchmill_watch_lag_events Events ahead of the consumer, the most of the watches with this name.
# TYPE watchmill_watch_lag_events gauge
watchmill_watch_lag_events{group="",resource="pods",watch="prompt"} 0
watchmill_watch_lag_events{group="",resource="pods",watch="stuck"} 3
# HELP apiserver_watch_cache_events_received_total Changes that the cache has applied.
# TYPE apiserver_watch_cache_events_received_total counter
apiserver_watch_cache_events_received_total{group="",resource="pods"} 3
# HELP apiserver_resource_objects Objects that the cache holds.
# TYPE apiserver_resource_objects gauge
apiserver_resource_objects{group="",resource="pods"} 3
# HELP apiserver_watch_cache_capacity Changes that the window may hold; 0 without a cache.
# TYPE apiserver_watch_cache_capacity gauge
apiserver_watch_cache_capacity{group="",resource="pods"} 1.048576e+06
`), "apiserver_watch_cache_capacity", "watchmill_watch_behind_seconds", "watchmill_watch_lag_events", "apiserver_watch_cache_events_received_total", "apiserver_resource_objects"))

	stuck.Stop()
	prompt.Stop()
	o, err := e.Create(ctx, pod{"more"})
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(ctx, o.Revision))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP watchmill_watch_ends_total Watches that have ended, by reason.
# TYPE watchmill_watch_ends_total counter
watchmill_watch_ends_total{group="",reason="stopped",resource="pods"} 2
`), "watchmill_watch_ends_total", "watchmill_watch_lag_events"))
	stages, err := testutil.GatherAndCount(registry, "apiserver_watch_events_dispatch_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 3, stages)
}

// A name that Prometheus does not take as a label is shown as far as it can be, and hides no
// other metric. Bounds are taken in any order.
func TestMetrics_OfNamesThatAreNotUTF8(t *testing.T) {
	registry, e, _ := simulated(t, prommetrics.Options{
		Buckets: []float64{10, 1, 1}, Resource: func(string) (string, string) { return "g\xff", "pods" },
	})
	_, err := e.Watch(t.Context(), engine.WatchOptions{Name: "w\xff"})
	require.NoError(t, err)
	_, err = e.Create(t.Context(), pod{"a"})
	require.NoError(t, err)
	families, err := registry.Gather()
	require.NoError(t, err)
	var watches []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "watchmill_watch_lag_events" {
				watches = append(watches, m.GetLabel()[0].GetValue()+" "+m.GetLabel()[2].GetValue())
			}
		}
	}
	require.Equal(t, []string{"g\uFFFD w\uFFFD"}, watches)
}

// A panic in a function of the user's would end the process, since a registry may collect on
// goroutines of its own.
func TestMetrics_ContainPanicsOfResource(t *testing.T) {
	registry, _, _ := simulated(t, prommetrics.Options{Resource: func(string) (string, string) { panic("no such kind") }})
	families, err := registry.Gather()
	require.ErrorContains(t, err, `collecting metrics panicked for "pods": no such kind`)
	for _, family := range families {
		require.NotContains(t, family.GetName(), "watchmill")
	}
}

// The number that tells engines of one name apart may be another's name.
func TestMetrics_OfEnginesWithNumbersInTheirNames(t *testing.T) {
	registry, e, _ := simulated(t, prommetrics.Options{})
	for _, name := range []string{"pods", "pods#2"} {
		also, err := engine.New(config(e.Host(), name))
		require.NoError(t, err)
		defer func() { require.NoError(t, also.Close()) }()
	}
	n, err := testutil.GatherAndCount(registry, "watchmill_watches")
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

// A counter that went on with the number of another engine would show an increase, or a restart,
// that there was not.
func TestMetrics_AnEngineKeepsItsNumberWhenAnotherEnds(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	metrics.Observe(host)
	begin := func() *engine.Engine[pod] {
		e, err := engine.New(config(host, "pods"))
		require.NoError(t, err)
		return e
	}
	events := func() map[string]float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		found := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "apiserver_watch_cache_events_received_total" {
					found[m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		return found
	}
	write := func(e *engine.Engine[pod], n int) {
		for i := range n {
			o, err := e.Create(t.Context(), pod{fmt.Sprint("p", i)})
			require.NoError(t, err)
			require.NoError(t, e.WaitForRevision(t.Context(), o.Revision))
		}
	}
	first, second := begin(), begin()
	write(first, 3)
	write(second, 1)
	require.Equal(t, map[string]float64{"pods": 3, "pods#2": 1}, events())
	require.NoError(t, first.Close())
	require.Equal(t, map[string]float64{"pods#2": 1}, events())
	third := begin()
	require.Equal(t, map[string]float64{"pods": 0, "pods#2": 1}, events(), "a number that is free is used again")
	require.NoError(t, third.Close())
	require.NoError(t, second.Close())
}

func TestMetrics_BoundTheirSeries(t *testing.T) {
	registry, e, _ := simulated(t, prommetrics.Options{Watches: 2})
	for i := range 10 {
		_, err := e.Watch(t.Context(), engine.WatchOptions{Name: fmt.Sprint("w", i%5)})
		require.NoError(t, err)
	}
	n, err := testutil.GatherAndCount(registry, "watchmill_watch_lag_events")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func TestMetrics_TellEnginesOfOneNameApart(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{Resource: func(name string) (string, string) { return "example.com", name }})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	hosts := make([]*engine.Host, 2)
	for i := range hosts {
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		hosts[i] = host
		metrics.Observe(host)
		metrics.Observe(host) // which does nothing
		e, err := engine.New(config(host, "pods"))
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, e.Close())
			require.NoError(t, host.Close())
		})
	}
	n, err := testutil.GatherAndCount(registry, "watchmill_watches")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	metrics.Forget(hosts[1])
	n, err = testutil.GatherAndCount(registry, "watchmill_watches")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestMetrics_OfTheCacheHaveTheNamesOfTheAPIServer(t *testing.T) {
	registry, e, _ := simulated(t, prommetrics.Options{})
	gone, cancel := context.WithCancel(t.Context())
	require.NoError(t, e.WaitForRevision(t.Context(), 1))
	cancel()
	require.ErrorIs(t, e.WaitForRevision(gone, 99), context.Canceled)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP apiserver_watch_cache_initialization_errors_total Failed attempts to list or to watch the backend, each of which left the cache unable to serve.
# TYPE apiserver_watch_cache_initialization_errors_total counter
apiserver_watch_cache_initialization_errors_total{group="",resource="pods"} 0
# HELP apiserver_watch_cache_initializations_total Times that the cache became ready.
# TYPE apiserver_watch_cache_initializations_total counter
apiserver_watch_cache_initializations_total{group="",resource="pods"} 1
`), "apiserver_watch_cache_initialization_errors_total", "apiserver_watch_cache_initializations_total"))
	families, err := registry.Gather()
	require.NoError(t, err)
	bounds := map[string]int{}
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			bounds[fmt.Sprint(f.GetName(), " ", h.GetSampleCount())] = len(h.GetBucket())
		}
	}
	require.Equal(t, map[string]int{
		"apiserver_watch_cache_initialization_duration_seconds 1": 12,
		"apiserver_watch_cache_read_wait_seconds 1":               13,
	}, bounds)
}

func TestMetrics_OfListsHaveTheNamesOfTheAPIServer(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{})
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	metrics.Observe(host)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	byNode := config(host, "pods")
	byNode.Fields = engine.Fields[pod]{"node": func(p pod) string { return p.Name[:1] }}
	byNode.Index = []string{"node"}
	indexed, err := engine.New(byNode)
	require.NoError(t, err)
	bare := config(host, "bare")
	bare.NoCache = true
	uncached, err := engine.New(bare)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, indexed.Close())
		require.NoError(t, uncached.Close())
		require.NoError(t, host.Close())
	})
	require.NoError(t, indexed.WaitForRevision(t.Context(), 1)) // or a page might be the backend's
	for _, name := range []string{"a1", "a2", "b1"} {
		_, err := indexed.Create(t.Context(), pod{name})
		require.NoError(t, err)
	}
	for _, selector := range []string{"node=a", "node!=a"} {
		_, err := indexed.List(t.Context(), engine.ListOptions{Fields: selector})
		require.NoError(t, err)
	}
	_, err = uncached.List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP apiserver_cache_list_fetched_objects_total Objects that lists have read from the cache.
# TYPE apiserver_cache_list_fetched_objects_total counter
apiserver_cache_list_fetched_objects_total{group="",index="",resource="pods"} 3
apiserver_cache_list_fetched_objects_total{group="",index="f:node",resource="pods"} 2
# HELP apiserver_cache_list_returned_objects_total Objects that lists from the cache had.
# TYPE apiserver_cache_list_returned_objects_total counter
apiserver_cache_list_returned_objects_total{group="",resource="pods"} 3
# HELP apiserver_cache_list_total Lists that the cache has served.
# TYPE apiserver_cache_list_total counter
apiserver_cache_list_total{group="",index="",resource="pods"} 1
apiserver_cache_list_total{group="",index="f:node",resource="pods"} 1
# HELP apiserver_watch_cache_consistent_read_total Lists of the newest state that the cache was asked for, by whether they succeeded and whether the backend was asked instead.
# TYPE apiserver_watch_cache_consistent_read_total counter
apiserver_watch_cache_consistent_read_total{fallback="false",group="",resource="pods",success="false"} 0
apiserver_watch_cache_consistent_read_total{fallback="false",group="",resource="pods",success="true"} 2
apiserver_watch_cache_consistent_read_total{fallback="true",group="",resource="pods",success="false"} 0
apiserver_watch_cache_consistent_read_total{fallback="true",group="",resource="pods",success="true"} 0
`), "apiserver_cache_list_fetched_objects_total", "apiserver_cache_list_returned_objects_total", "apiserver_cache_list_total",
		"apiserver_watch_cache_consistent_read_total"))
}

func TestMetrics_OfInitialStatesAndResumes(t *testing.T) {
	registry, e, _ := simulated(t, prommetrics.Options{})
	o, err := e.Create(t.Context(), pod{"a"})
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(t.Context(), o.Revision))
	initial, err := e.Watch(t.Context(), engine.WatchOptions{InitialState: true})
	require.NoError(t, err)
	_, err = initial.Next(t.Context())
	require.NoError(t, err)
	_, err = e.Watch(t.Context(), engine.WatchOptions{From: o.Revision})
	require.NoError(t, err)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP apiserver_init_events_total Events of initial states that watches have read.
# TYPE apiserver_init_events_total counter
apiserver_init_events_total{group="",resource="pods"} 1
# HELP watchmill_resumes_total Watches that asked for the changes after a revision, by whether those were still known.
# TYPE watchmill_resumes_total counter
watchmill_resumes_total{group="",resource="pods",result="expired"} 0
watchmill_resumes_total{group="",resource="pods",result="resumed"} 1
`), "apiserver_init_events_total", "watchmill_resumes_total"))
}

// A server on which clients define kinds, and delete them, would have ever more series.
func TestMetrics_DropTheSeriesOfEnginesThatHaveEnded(t *testing.T) {
	byVersion := func(name string) (group, resource string) {
		resource, _, _ = strings.Cut(name, "/")
		return "", resource
	}
	registry, pods, _ := simulated(t, prommetrics.Options{Resource: byVersion})
	use := func(e *engine.Engine[pod]) {
		require.NoError(t, e.WaitForRevision(t.Context(), 1))
		w, err := e.Watch(t.Context(), engine.WatchOptions{})
		require.NoError(t, err)
		_, err = e.Create(t.Context(), pod{"a"})
		require.NoError(t, err)
		_, err = w.Next(t.Context())
		require.NoError(t, err)
	}
	use(pods)
	before, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	var more []*engine.Engine[pod]
	for _, name := range []string{"nodes/v1", "nodes/v2"} {
		e, err := engine.New(config(pods.Host(), name))
		require.NoError(t, err)
		use(e)
		more = append(more, e)
	}
	measured := []string{
		"apiserver_watch_events_dispatch_duration_seconds", "watchmill_watch_ends_total",
		"apiserver_watch_cache_read_wait_seconds", "apiserver_watch_cache_initialization_duration_seconds",
	}
	require.NoError(t, more[0].Close())
	shared, err := testutil.GatherAndCount(registry, measured...)
	require.NoError(t, err)
	require.Equal(t, 2*(3+1)+1, shared, "the other engine of the same labels runs, and a watch of one has ended")
	require.NoError(t, more[1].Close())
	after, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Equal(t, before, after)
	left, err := testutil.GatherAndCount(registry, measured...)
	require.NoError(t, err)
	require.Equal(t, 3+1, left, "three stages and the start of pods, of which no watch has ended")
}

// Without a host it is not known which engines run.
func TestMetrics_KeepTheSeriesOfEnginesOfHostsThatAreNotObserved(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	metrics.Latency("pods", engine.StageCached, 1)
	for range 2 {
		n, err := testutil.GatherAndCount(registry)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}

// The panic is where the host is given, and not in a scrape.
func TestObserve_RefusesAHostThatIsNilOrZero(t *testing.T) {
	for _, none := range []*engine.Host{nil, {}} {
		require.PanicsWithError(t, "invalid configuration: host is nil or a zero Host; give one that engine.NewHost has returned",
			func() { prommetrics.New(prommetrics.Options{}).Observe(none) })
	}
}
