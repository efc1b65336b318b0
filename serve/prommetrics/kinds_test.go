package prommetrics_test

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/prommetrics"
)

// kind returns a store of widgets under other names.
func kind(t *testing.T, version, name string) *registry.Store[Widget] {
	t.Helper()
	s, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: version, Kind: name}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// resources returns the resources, with their versions if they have one, of the series of each
// metric.
func resources(t *testing.T, of prometheus.Gatherer) map[string][]string {
	t.Helper()
	families, err := of.Gather()
	require.NoError(t, err)
	all := map[string][]string{}
	for _, f := range families {
		var found []string
		for _, m := range f.GetMetric() {
			if resource := label(m, "resource"); resource != "" {
				found = append(found, resource+"/"+label(m, "version"))
			}
		}
		if len(found) > 0 {
			all[f.GetName()] = slices.Compact(slices.Sorted(slices.Values(found)))
		}
	}
	return all
}

// A server on which clients define kinds, and delete them, would have ever more series.
func TestCollect_DropsTheSeriesOfKindsThatAreGone(t *testing.T) {
	metrics := prommetrics.New(prommetrics.Options{})
	of := prometheus.NewPedanticRegistry()
	require.NoError(t, of.Register(metrics))
	widgets, gadgets, newer := kind(t, "v1", "Widget"), kind(t, "v1", "Gadget"), kind(t, "v2", "Gadget")
	server, err := serve.New(serve.Config{Resources: []serve.Provider{widgets, gadgets, newer}, Metrics: metrics})
	require.NoError(t, err)

	on := func(version, resource string) serve.Endpoint {
		return serve.Endpoint{Verb: "GET", Group: "example.com", Version: version, Resource: resource, Scope: "resource"}
	}
	everything := func(on serve.Endpoint) serve.WatchMetrics {
		metrics.Served(serve.Measured{Endpoint: on, Code: 504, RequestBytes: 1, ResponseBytes: 1, TimedOut: true, Aborted: true})
		return metrics.Watching(on)
	}
	for _, e := range []serve.Endpoint{on("v1", "widgets"), on("v1", "gadgets"), on("v2", "gadgets"), {Verb: "GET"}} {
		everything(e).Ended()
	}
	all := resources(t, of)
	require.Len(t, all, 13, "with all metrics that have the label")
	server.Remove(gadgets)
	require.Equal(t, all, resources(t, of), "no server is observed, so what is served is not known")

	metrics.Observe(server)
	for name, left := range resources(t, of) {
		if name == "apiserver_request_body_size_bytes" {
			require.Equal(t, []string{"gadgets/", "widgets/"}, left, "another version is served")
		} else {
			require.Equal(t, []string{"gadgets/v2", "widgets/v1"}, left, name)
		}
	}
	require.Len(t, resources(t, of), len(all))

	last := everything(on("v2", "gadgets"))
	server.Remove(newer)
	for name, left := range resources(t, of) {
		require.Len(t, left, 1, name)
		require.Contains(t, left[0], "widgets/", name)
	}
	last.Sent(1)
	last.Ended()
	metrics.Served(serve.Measured{Endpoint: on("v2", "gadgets"), Code: 200}) // a request that has lasted until now
	for name, left := range resources(t, of) {
		require.Len(t, left, 1, name)
	}

	require.NoError(t, server.Add(newer))
	server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/apis/example.com/v2/gadgets", nil))
	require.Equal(t, []string{"gadgets/v2", "widgets/v1"}, resources(t, of)["apiserver_request_total"], "it is back")
}
