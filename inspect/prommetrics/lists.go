package prommetrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/engine"
)

var perIndex = []string{"group", "resource", "index"}

var (
	listsDesc      = prometheus.NewDesc("apiserver_cache_list_total", "Lists that the cache has served.", perIndex, nil)
	fetchedDesc    = prometheus.NewDesc("apiserver_cache_list_fetched_objects_total", "Objects that lists have read from the cache.", perIndex, nil)
	returnedDesc   = prometheus.NewDesc("apiserver_cache_list_returned_objects_total", "Objects that lists from the cache had.", perEngine, nil)
	consistentDesc = prometheus.NewDesc("apiserver_watch_cache_consistent_read_total", "Lists of the newest state that the cache was asked for, by whether they succeeded and whether the backend was asked instead.",
		[]string{"group", "resource", "success", "fallback"}, nil)
)

func describeLists(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{listsDesc, fetchedDesc, returnedDesc, consistentDesc} {
		to <- d
	}
}

// collectLists collects the counters of an engine's lists, none if it has no cache.
func collectLists(to chan<- prometheus.Metric, s *engine.Stats, group, resource string) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{group, resource}, labels...)...)
	}
	if s.CacheLists == nil {
		return
	}
	var returned uint64
	for _, l := range s.CacheLists {
		count(listsDesc, l.Lists, l.Index)
		count(fetchedDesc, l.Fetched, l.Index)
		returned += l.Returned
	}
	count(returnedDesc, returned)
	for _, outcome := range []struct {
		n                 uint64
		success, fellBack bool
	}{
		{s.Consistent.Served, true, false}, {s.Consistent.Failed, false, false},
		{s.Consistent.FellBack, true, true}, {s.Consistent.FallbackFailed, false, true},
	} {
		count(consistentDesc, outcome.n, strconv.FormatBool(outcome.success), strconv.FormatBool(outcome.fellBack))
	}
}
