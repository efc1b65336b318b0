package prommetrics_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/prommetrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func Example() {
	metrics := prommetrics.New(prommetrics.Options{})
	page, err := prommetrics.Handler(metrics)
	if err != nil {
		fmt.Println(err)
		return
	}
	widgets, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer widgets.Close()
	server, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}, Metrics: metrics, MetricsHandler: page})
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics.Observe(server)

	for _, path := range []string{"/apis/example.com/v1/widgets", "/metrics"} {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost"+path, nil))
		for line := range strings.Lines(answer.Body.String()) {
			if strings.HasPrefix(line, "apiserver_request_total") {
				fmt.Print(line)
			}
		}
	}
	// Output:
	// apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 1
}

// served returns a registry over the metrics of a server, its address, and what
// makes the metrics forget it.
func served(t *testing.T, limits serve.Limits) (of *prometheus.Registry, url string, forget func()) {
	t.Helper()
	metrics := prommetrics.New(prommetrics.Options{})
	widgets, err := registry.New(registry.Config[Widget]{
		Kind:   registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Engine: engine.Config[Widget]{FreshnessTimeout: time.Hour}, // however long a machine stands still
	})
	require.NoError(t, err)
	handler, err := serve.New(serve.Config{
		Resources: []serve.Provider{widgets}, Metrics: metrics, Limits: limits, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	metrics.Observe(handler)
	metrics.Observe(handler) // has no effect
	h := httptest.NewServer(handler)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		h.CloseClientConnections()
		h.Close()
		require.NoError(t, widgets.Close())
	})
	of = prometheus.NewPedanticRegistry()
	require.NoError(t, of.Register(metrics))
	return of, h.URL + "/apis/example.com/v1/namespaces/default/widgets", func() { metrics.Forget(handler) }
}

func send(t *testing.T, method, url, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func finish(t *testing.T, resp *http.Response) {
	t.Helper()
	_, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	resp.Body.Close()
}

func TestMetrics_HaveTheNamesOfTheAPIServer(t *testing.T) {
	registry, url, _ := served(t, serve.Limits{Watches: 1, WriteTimeout: 1, BodyBytes: 100})
	watch := send(t, "GET", url+"?watch=1", "")
	finish(t, send(t, "GET", url+"?watch=1", ""))                                           // 429
	finish(t, send(t, "POST", url, `{"metadata":{"name":"`+strings.Repeat("x", 200)+`"}}`)) // 413
	finish(t, send(t, "GET", url+"/none", ""))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP apiserver_longrunning_requests Watches that are open.
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{component="apiserver",group="example.com",resource="widgets",scope="namespace",subresource="",verb="WATCH",version="v1"} 1
# HELP apiserver_request_total Requests, watches when they have ended.
# TYPE apiserver_request_total counter
apiserver_request_total{code="404",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="resource",subresource="",verb="GET",version="v1"} 1
apiserver_request_total{code="413",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="429",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="namespace",subresource="",verb="WATCH",version="v1"} 1
# HELP apiserver_request_terminations_total Requests that the server refused or ended to protect itself.
# TYPE apiserver_request_terminations_total counter
apiserver_request_terminations_total{code="413",component="apiserver",group="example.com",resource="widgets",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_terminations_total{code="429",component="apiserver",group="example.com",resource="widgets",scope="namespace",subresource="",verb="WATCH",version="v1"} 1
# HELP apiserver_current_inflight_requests Requests that are being served, watches not among them.
# TYPE apiserver_current_inflight_requests gauge
apiserver_current_inflight_requests{request_kind="mutating"} 0
apiserver_current_inflight_requests{request_kind="readOnly"} 0
# HELP watchmill_requests_rejected_total Requests that a limit refused or cut off, by limit.
# TYPE watchmill_requests_rejected_total counter
watchmill_requests_rejected_total{limit="bodies"} 0
watchmill_requests_rejected_total{limit="body"} 1
watchmill_requests_rejected_total{limit="draining"} 0
watchmill_requests_rejected_total{limit="reads"} 0
watchmill_requests_rejected_total{limit="reads_per_user"} 0
watchmill_requests_rejected_total{limit="watches"} 1
watchmill_requests_rejected_total{limit="watches_per_user"} 0
watchmill_requests_rejected_total{limit="write_stall"} 0
watchmill_requests_rejected_total{limit="writes"} 0
watchmill_requests_rejected_total{limit="writes_per_user"} 0
`), "apiserver_longrunning_requests", "apiserver_request_total", "apiserver_request_terminations_total",
		"apiserver_current_inflight_requests", "watchmill_requests_rejected_total"))
	watch.Body.Close()
}

func TestMetrics_CountTheEventsOfWatchesAndTheirBytes(t *testing.T) {
	registry, url, forget := served(t, serve.Limits{})
	watch := send(t, "GET", url+"?watch=1", "")
	in := bufio.NewReader(watch.Body)
	finish(t, send(t, "POST", url, `{"metadata":{"name":"a"}}`))
	event := func() (size int) {
		for {
			line, err := in.ReadString('\n')
			require.NoError(t, err)
			if line != "\n" { // which keeps the connection alive
				return len(line)
			}
		}
	}
	sent := event()
	finish(t, send(t, "POST", url, `{"metadata":{"name":"b"}}`))
	event() // after it the first has been counted
	figures := gathered(t, registry)
	require.GreaterOrEqual(t, figures["apiserver_watch_events_total"], 1.0)
	require.GreaterOrEqual(t, figures["watchmill_watch_sent_bytes_total"], float64(sent))
	require.Equal(t, 1.0, figures["apiserver_watch_list_duration_seconds"])
	require.GreaterOrEqual(t, figures["watchmill_write_stall_seconds"], 2.0, "flushes: of the header, and of the first event")
	require.Equal(t, 2.0, figures["apiserver_request_body_size_bytes"])
	require.GreaterOrEqual(t, figures["watchmill_encode_cache_misses_total"], 1.0)
	forget()
	forget() // has no effect
	left := gathered(t, registry)
	require.Equal(t, figures["watchmill_encode_cache_misses_total"], left["watchmill_encode_cache_misses_total"], "a counter never goes back")
	finish(t, send(t, "POST", url, `{"metadata":{"name":"c"}}`))
	require.Equal(t, left["watchmill_encode_cache_misses_total"], gathered(t, registry)["watchmill_encode_cache_misses_total"], "the server is shown no more")
}

// Durations and latencies are of the same requests, watches not among them, and have the
// bounds of the API server.
func TestMetrics_DurationsAndLatencies(t *testing.T) {
	registry, url, _ := served(t, serve.Limits{})
	finish(t, send(t, "GET", url+"?watch=1&timeoutSeconds=1", ""))
	for range 3 {
		finish(t, send(t, "GET", url, ""))
	}
	finish(t, send(t, "GET", url+"/none", "")) // after it the others have been counted
	finish(t, send(t, "GET", url+"/none", ""))
	families, err := registry.Gather()
	require.NoError(t, err)
	bounds := map[string]int{"apiserver_request_duration_seconds": 23, "apiserver_request_sli_duration_seconds": 21}
	for _, f := range families {
		want, is := bounds[f.GetName()]
		if !is {
			continue
		}
		delete(bounds, f.GetName())
		for _, m := range f.GetMetric() {
			require.Len(t, m.GetHistogram().GetBucket(), want, f.GetName())
			switch verb := label(m, "verb"); verb {
			case "LIST":
				require.EqualValues(t, 3, m.GetHistogram().GetSampleCount(), f.GetName())
			default:
				require.Equal(t, "GET", verb, "no watches")
			}
		}
	}
	require.Empty(t, bounds)
}

// Bounds in any order are taken, also such as the histogram of initial states has already.
func TestMetrics_TakeBoundsInAnyOrder(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{Buckets: []float64{120, 1, 600, 1}})
	of := prometheus.NewPedanticRegistry()
	require.NoError(t, of.Register(metrics))
	metrics.Served(serve.Measured{Endpoint: serve.Endpoint{Verb: "GET"}, Code: 200})
	w := metrics.Watching(serve.Endpoint{Verb: "WATCH"})
	w.Synced(time.Minute)
	w.Ended()
	families, err := of.Gather()
	require.NoError(t, err)
	bounds := map[string]int{}
	for _, family := range families {
		bounds[family.GetName()] = len(family.GetMetric()[0].GetHistogram().GetBucket())
	}
	require.Equal(t, 3, bounds["apiserver_request_duration_seconds"])
	require.Equal(t, 6, bounds["apiserver_watch_list_duration_seconds"], "with 90, 180 and 300")
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// gathered returns the first figure of each metric; for a histogram, its number of
// observations.
func gathered(t *testing.T, of *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := of.Gather()
	require.NoError(t, err)
	figures := map[string]float64{}
	for _, f := range families {
		switch m := f.GetMetric()[0]; {
		case m.Counter != nil:
			figures[f.GetName()] = m.GetCounter().GetValue()
		case m.Histogram != nil:
			figures[f.GetName()] = float64(m.GetHistogram().GetSampleCount())
		}
	}
	return figures
}

// The panic is where the server is given, and not in a scrape.
func TestObserve_RefusesNoServer(t *testing.T) {
	require.PanicsWithError(t, "invalid configuration: server is nil; give one that serve.New has returned",
		func() { prommetrics.New(prommetrics.Options{}).Observe(nil) })
}

// The same collector twice is refused, and not left out.
func TestHandler_RefusesACollectorTwice(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{})
	_, err := prommetrics.Handler(metrics, metrics)
	require.Error(t, err)
}

// A request that took too long is one that the server ended, and one without a body has no size.
func TestServed_CountsWhatItIsTold(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	on := serve.Endpoint{Verb: "GET", Resource: "widgets", Scope: "resource"}
	for _, code := range []int{200, 500, 503, 504} {
		metrics.Served(serve.Measured{Endpoint: on, Code: code})
	}
	metrics.Served(serve.Measured{Endpoint: on, Code: 504, TimedOut: true})
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP apiserver_request_terminations_total Requests that the server refused or ended to protect itself.
# TYPE apiserver_request_terminations_total counter
apiserver_request_terminations_total{code="504",component="apiserver",group="",resource="widgets",scope="resource",subresource="",verb="GET",version=""} 1
`), "apiserver_request_terminations_total", "apiserver_request_body_size_bytes"))
}

// As in Kubernetes, dry runs are no objective of latency, and the sizes of answers are those of reads.
func TestServed_LeavesOutWhatTheAPIServerDoes(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	for _, verb := range []string{"GET", "LIST", "WATCH", "POST", "DELETE"} {
		metrics.Served(serve.Measured{Endpoint: serve.Endpoint{Verb: verb}, Code: 200})
	}
	metrics.Served(serve.Measured{Endpoint: serve.Endpoint{Verb: "PUT", DryRun: true}, Code: 200})
	families, err := registry.Gather()
	require.NoError(t, err)
	verbs := map[string][]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			verbs[f.GetName()] = append(verbs[f.GetName()], label(m, "verb"))
		}
	}
	require.Equal(t, []string{"DELETE", "GET", "LIST", "POST", "PUT"}, verbs["apiserver_request_duration_seconds"])
	require.Equal(t, []string{"DELETE", "GET", "LIST", "POST"}, verbs["apiserver_request_sli_duration_seconds"])
	require.Equal(t, []string{"GET", "LIST"}, verbs["apiserver_response_sizes"])
}
