package scenario

import (
	"slices"
	"strings"
)

// Metric is something that a run measures and an assertion can judge.
type Metric struct {
	Name  string
	Unit  Unit
	About string
}

// Unit is what a metric counts in. As floating-point numbers: times are in
// seconds, amounts of memory in bytes.
type Unit string

// The units.
const (
	Count     Unit = "count"
	PerSecond Unit = "per second"
	Time      Unit = "time"
	Bytes     Unit = "bytes"
)

// Metrics is all of them, as reports list them.
var Metrics = []Metric{
	{"lost", Count, "events that a watcher neither saw nor was told of"},
	{"duplicated", Count, "events that came twice, or out of order"},
	{"unread", Count, "watchers that had not read everything when the run ended"},
	{"failed", Count, "watchers that ended and could not come back"},
	{"expired", Count, "watches that ended since the window had moved past them"},
	{"terminated", Count, "watches that ended for slowness"},
	{"panicked", Count, "watches that ended by a panic of their handler"},
	{"reconnects", Count, "watches that were opened in the place of another"},
	{"relists", Count, "lists that watchers needed to go on"},
	{"conflated", Count, "deliveries that stand for several events"},
	{"stalled", Count, "most watchers that were stalled at one time"},
	{"lag", Count, "most events that a watcher was behind"},
	{"writes", Count, "writes that succeeded"},
	{"write-errors", Count, "writes that failed"},
	{"unwritten", Count, "writes that were due but not made in time"},
	{"writes/s", PerSecond, "writes, while writers were at work"},
	{"deliveries", Count, "changes handed to consumers; not the state that watches start with"},
	{"deliveries/s", PerSecond, "the same, until all were read"},
	{"reads", Count, "reads that succeeded, of readers and of references"},
	{"read-errors", Count, "reads that failed"},
	{"missed-reads", Count, "reads that were due but not made in time"},
	{"stale", Count, "references, and handlers of informers, that did not have the newest state in the end"},
	{"p50", Time, "latency from a write's intended time to the consumer: the median"},
	{"p90", Time, "the 90th percentile"},
	{"p99", Time, "the 99th percentile"},
	{"p99.9", Time, "the 99.9th percentile"},
	{"max", Time, "the longest"},
	{"commit-p99", Time, "from the intended time until the write returned"},
	{"cache-p99", Time, "from storing until the cache had the revision, sampled"},
	{"dispatch-p99", Time, "from storing until a watcher without a backlog was called"},
	{"handed-p99", Time, "from storing until the consumer had the event"},
	{"read-p99", Time, "from a read's intended time until it returned"},
	{"object-p99", Time, "from when a reference was to be read until its object was returned"},
	{"informer-p99", Time, "from a write's intended time until an informer's handler at full speed was told"},
	{"heap", Bytes, "most memory in objects, as sampled"},
	{"goroutines", Count, "goroutines when all is over; start is how many there were before"},
	{"engine-relists", Count, "times that the engine listed its storage anew"},
}

// GroupMetrics names, by the kind of a group, the metrics that groups have of
// their own beside all others. An assertion puts the group in front, as in
// "healthy.p99 < 50ms". Latencies of writers, readers and caches are those of
// their calls.
var GroupMetrics = map[string][]string{
	"watchers":  {"lost", "unread", "expired", "terminated", "panicked", "reconnects", "relists", "p50", "p99", "max"},
	"informers": {"stale", "p50", "p99", "max"},
	"writers":   {"p50", "p99", "max"},
	"readers":   {"p50", "p99", "max"},
	"caches":    {"p50", "p99", "max"},
}

// groupMetric returns the group and the metric that a name such as "healthy.p99"
// puts together.
func groupMetric(name string) (group string, m Metric, known bool) {
	at := strings.LastIndexByte(name, '.')
	if at <= 0 {
		return "", Metric{}, false
	}
	group, own := name[:at], name[at+1:]
	for _, names := range GroupMetrics {
		if slices.Contains(names, own) {
			m, known = metric(own)
			return group, m, known
		}
	}
	return "", Metric{}, false
}

// metric returns the metric of that name.
func metric(name string) (Metric, bool) {
	i := slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return Metrics[i], true
}
