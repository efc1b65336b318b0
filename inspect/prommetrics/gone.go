package prommetrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// saw records that an engine has series. It is called once they are made, so that the next
// scrape drops what was made while another one dropped the engine's.
func (m *Metrics) saw(engine string, has series) {
	m.mu.RLock()
	before, known := m.seen[engine]
	m.mu.RUnlock()
	if known && before == has {
		return // as nearly always, and by any number of goroutines at a time
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[engine] = has
}

// dropGone deletes the series of engines that run on no observed host any more.
func (m *Metrics) dropGone() {
	for _, s := range m.takeGone() {
		labels := prometheus.Labels{"group": s.group, "resource": s.resource}
		m.latency.DeletePartialMatch(labels)
		m.ends.DeletePartialMatch(labels)
		for _, histogram := range m.waits {
			histogram.DeletePartialMatch(labels)
		}
	}
}

// takeGone removes the engines from seen that run on no observed host, and returns the series
// that no other has. Without a host none is gone, since it is not known which run.
func (m *Metrics) takeGone() (gone []series) {
	m.mu.Lock()
	hosts, had := m.hosts, slices.Collect(maps.Keys(m.seen)) // before those that run: an engine that starts is not among them
	m.mu.Unlock()
	if len(hosts) == 0 {
		return nil
	}
	running := map[string]bool{}
	for _, h := range hosts {
		for _, r := range h.Engines() {
			running[r.Name()] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range had {
		if s, has := m.seen[name]; has && !running[name] {
			delete(m.seen, name)
			gone = append(gone, s)
		}
	}
	left := slices.Collect(maps.Values(m.seen))
	return slices.DeleteFunc(gone, func(s series) bool { return slices.Contains(left, s) })
}
