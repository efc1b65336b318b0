package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Metric is a figure that a run measures and an assertion can compare.
type Metric struct {
	Name  string
	Unit  Unit
	About string
	// Of are the lists of groups that it is about, such as caches and informers: without a
	// group in one of them it is zero, whatever happens. It is empty for times, which are then
	// not measured, and for what does not depend on groups.
	Of []string
}

// The lists of groups that metrics are about.
var (
	ofWatchers = []string{"watchers"}
	ofWriters  = []string{"writers"}
	ofReaders  = []string{"readers", "caches"}
	ofCopies   = []string{"caches", "informers"}
)

// Unit is the unit of a metric. Times are in seconds, amounts of memory in bytes.
type Unit string

// The units.
const (
	Count     Unit = "count"
	PerSecond Unit = "per second"
	Time      Unit = "time"
	Bytes     Unit = "bytes"
)

// Metrics lists all metrics, in the order of reports.
var Metrics = []Metric{
	{"lost", Count, "events that a watcher neither saw nor was told of", ofWatchers},
	{"duplicated", Count, "events that came twice, or out of order", ofWatchers},
	{"unread", Count, "watchers that had not read everything when the run ended", ofWatchers},
	{"failed", Count, "watchers that ended and could not come back", ofWatchers},
	{"expired", Count, "watches that ended since the window had moved past them", ofWatchers},
	{"terminated", Count, "watches that ended for slowness", ofWatchers},
	{"panicked", Count, "watches that ended by a panic of their handler", ofWatchers},
	{"reconnects", Count, "watches that replaced an earlier one", ofWatchers},
	{"relists", Count, "lists that watchers needed to go on", ofWatchers},
	{"conflated", Count, "deliveries that stand for several events", ofWatchers},
	{"stalled", Count, "most watchers that were stalled at one time", ofWatchers},
	{"lag", Count, "most events that a watcher was behind", ofWatchers},
	{"writes", Count, "writes that succeeded", ofWriters},
	{"write-errors", Count, "writes that failed", ofWriters},
	{"unwritten", Count, "writes that were due but not made in time", ofWriters},
	{"writes/s", PerSecond, "writes that succeeded, over the whole load", ofWriters},
	{"deliveries", Count, "changes handed to consumers; not the state that watches start with", ofWatchers},
	{"deliveries/s", PerSecond, "the same, until all were read", ofWatchers},
	{"reads", Count, "reads that succeeded, of readers and of references", ofReaders},
	{"read-errors", Count, "reads that failed", ofReaders},
	{"missed-reads", Count, "reads that were due but not made in time", ofReaders},
	{"stale", Count, "references, and handlers of informers, that did not have the newest state in the end", ofCopies},
	{"p50", Time, "latency from a write's intended time to the consumer: the median", nil},
	{"p90", Time, "the 90th percentile", nil},
	{"p99", Time, "the 99th percentile", nil},
	{"p99.9", Time, "the 99.9th percentile", nil},
	{"max", Time, "the longest", nil},
	{"commit-p99", Time, "from the intended time until the write returned", nil},
	{"cache-p99", Time, "from storing until the cache had the revision, sampled", nil},
	{"dispatch-p99", Time, "from storing until a watcher without a backlog was called", nil},
	{"handed-p99", Time, "from storing until the consumer had the event", nil},
	{"read-p99", Time, "from a read's intended time until it returned", nil},
	{"object-p99", Time, "from when a reference was to be read until its object was returned", nil},
	{"informer-p99", Time, "from a write's intended time until an informer's handler at full speed was told", nil},
	{"heap", Bytes, "most memory in objects, as sampled during the load; the record of all writes is in it", nil},
	{"goroutines", Count, "goroutines when all is over; start is how many there were before", nil},
	{"engine-relists", Count, "times that the engine listed its storage again", nil},
}

// GroupMetrics lists the metrics that are also measured for each group, by the kind
// of the group. An assertion puts the group's name in front, as in
// "healthy.p99 < 50ms". For writers, readers and caches, latencies are those of
// their calls.
var GroupMetrics = map[string][]string{
	"watchers":  {"lost", "unread", "expired", "terminated", "panicked", "reconnects", "relists", "p50", "p99", "max"},
	"informers": {"stale", "p50", "p99", "max"},
	"writers":   {"p50", "p99", "max"},
	"readers":   {"p50", "p99", "max"},
	"caches":    {"stale", "p50", "p99", "max"},
}

// groupMetric splits a name such as "healthy.p99" into the group and its metric.
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

// Assertion is a comparison that must hold at the end, such as "lost = 0",
// "p99 < 50ms", "healthy.unread = 0", "heap < 512MiB" and "goroutines = start". It has a
// metric of the run or of one group, one of = < <= > >=, and a number, a duration
// or an amount of memory. See [Metrics] and [GroupMetrics].
type Assertion string

// Check is a parsed assertion.
type Check struct {
	// Group is the group whose metric is compared, "" for the metric of the run.
	Group  string
	Metric Metric
	// Compare is one of = < <= > >=.
	Compare string
	// Limit is what the metric is compared with, in the metric's unit. If Start is
	// set, the metric is compared with its value at the start instead.
	Limit float64
	Start bool
}

var comparison = regexp.MustCompile(`^\s*(\S+?)\s*(<=|>=|=|<|>)\s*(\S+)\s*$`)

// Check parses the assertion. It does not check that the group exists, which takes
// the scenario. Errors are *[Error] without a position.
func (a Assertion) Check() (Check, error) {
	parts := comparison.FindStringSubmatch(string(a))
	if parts == nil {
		return Check{}, &Error{Problem: quoted(string(a)) + " is not a comparison", Fix: `write it like "p99 < 50ms", with one of = < <= > >=`}
	}
	check := Check{Compare: parts[2]}
	m, known := metric(parts[1])
	if !known {
		check.Group, m, known = groupMetric(parts[1])
	}
	if !known {
		return Check{}, &Error{
			Problem: "there is no metric " + quoted(parts[1]),
			Fix:     "there are " + metricNames() + ", and some of a group, such as healthy.p99",
		}
	}
	check.Metric = m
	if parts[3] == "start" {
		check.Start = true
		if m.Name != "goroutines" {
			return Check{}, &Error{Problem: m.Name + " is not known at the start", Fix: "compare goroutines with start, others with a number"}
		}
		return check, nil
	}
	limit, err := m.Unit.parse(parts[3])
	if err != nil {
		return Check{}, err
	}
	check.Limit = limit
	return check, nil
}

// Holds reports whether the assertion holds, given the value of its metric at the
// end and at the start.
func (c Check) Holds(value, start float64) bool {
	limit := c.Limit
	if c.Start {
		limit = start
	}
	switch c.Compare {
	case "<":
		return value < limit
	case "<=":
		return value <= limit
	case ">":
		return value > limit
	case ">=":
		return value >= limit
	}
	return value == limit
}

// assertion checks that the assertion can be parsed, that the group that it names, if any,
// exists and has that metric, and that there are groups that it is about.
func (c *checker) assertion(at string, a Assertion, s *Scenario) {
	check, err := a.Check()
	if e, wrong := errors.AsType[*Error](err); wrong {
		c.wrong(at, e.Problem, e.Fix)
		return
	}
	if check.Group == "" {
		c.concerned(at, check.Metric, s)
		return
	}
	var names []string
	for _, g := range s.groups() {
		if *g.name != check.Group {
			names = append(names, *g.name)
			continue
		}
		if own := GroupMetrics[g.list]; !slices.Contains(own, check.Metric.Name) {
			c.wrong(at, fmt.Sprintf("%s of %s have no %s of their own", g.list, shortened(*g.name, maxQuoted), check.Metric.Name), "they have "+listed(own))
		}
		return
	}
	c.wrong(at, "there is no group "+quoted(check.Group), "there are "+listed(names))
}

// concerned checks that there is a group that the metric is about.
func (c *checker) concerned(at string, m Metric, s *Scenario) {
	isOne := func(g group) bool { return slices.Contains(m.Of, g.list) }
	if len(m.Of) > 0 && !slices.ContainsFunc(s.groups(), isOne) {
		groups := strings.Join(m.Of, " or ")
		c.wrong(at, fmt.Sprintf("%s is 0 whatever happens: there are no %s", m.Name, groups), "add "+groups+", or leave it out")
	}
}

func metricNames() string {
	names := make([]string, len(Metrics))
	for i, m := range Metrics {
		names[i] = m.Name
	}
	return strings.Join(names, ", ")
}

// parse reads a value as assertions write it.
func (u Unit) parse(text string) (float64, error) {
	switch u {
	case Time:
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			return d.Seconds(), nil
		}
		return 0, &Error{Problem: quoted(text) + " is not a duration", Fix: "write it like 50ms or 1.5s"}
	case Bytes:
		if n, ok := parseBytes(text); ok {
			return n, nil
		}
		return 0, &Error{Problem: quoted(text) + " is not an amount of memory", Fix: "write it like 512MiB, 1.5GiB or 1000000"}
	}
	if n, ok := parseNumber(text); ok {
		return n, nil
	}
	return 0, &Error{Problem: quoted(text) + " is not a number of zero or more", Fix: "write it like 0 or 1500"}
}

var byteUnits = []struct {
	suffix string
	factor float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

func parseBytes(text string) (float64, bool) {
	for _, unit := range byteUnits {
		if digits, found := strings.CutSuffix(text, unit.suffix); found {
			n, ok := parseNumber(digits)
			return n * unit.factor, ok
		}
	}
	return parseNumber(text)
}

func parseNumber(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && n >= 0 && n <= 1e18
}
