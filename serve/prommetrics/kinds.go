package prommetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/serve"
)

// kind names a kind in the labels of series.
type kind struct{ group, version, resource string }

// saw records that a kind has series. It is called once those of a request are made, so that
// the next scrape drops what was made while another one dropped the kind.
func (m *Metrics) saw(on serve.Endpoint) {
	if on.Resource == "" {
		return // it is of no kind
	}
	k := kind{on.Group, on.Version, on.Resource}
	m.mu.RLock()
	known := m.seen[k]
	m.mu.RUnlock()
	if known {
		return // as nearly always, and by any number of requests at a time
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[k] = true
}

// dropGone deletes the series of kinds that no observed server serves any more. A watch that
// is still open then counts on in series that are not shown.
func (m *Metrics) dropGone() {
	gone, resources := m.takeGone()
	for _, k := range gone {
		labels := prometheus.Labels{"group": k.group, "version": k.version, "resource": k.resource}
		for _, of := range m.byKind() {
			of.DeletePartialMatch(labels)
		}
		if !resources[schema.GroupResource{Group: k.group, Resource: k.resource}] {
			delete(labels, "version")
			m.bodySizes.DeletePartialMatch(labels)
		}
	}
}

// takeGone removes the kinds from seen that no observed server serves, and returns them with
// the resources that one serves, in whatever version. Without a server none is gone, since it
// is not known what is served.
func (m *Metrics) takeGone() (gone []kind, resources map[schema.GroupResource]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.servers) == 0 {
		return nil, nil
	}
	served, resources := map[kind]bool{}, map[schema.GroupResource]bool{}
	for _, s := range m.servers {
		for _, k := range s.Kinds() {
			served[kind{k.Group, k.Version, k.Plural}] = true
			resources[k.GroupResource()] = true
		}
	}
	for k := range m.seen {
		if !served[k] {
			delete(m.seen, k)
			gone = append(gone, k)
		}
	}
	return gone, resources
}

// series are those of a metric that has labels.
type series interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// byKind are the metrics whose labels name a kind with its version.
func (m *Metrics) byKind() []series {
	return []series{
		m.requests, m.durations, m.latencies, m.responseSizes, m.longRunning, m.terminations, m.aborts,
		m.events, m.eventSizes, m.eventBytes, m.synced, m.writeStalls,
	}
}
