package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Assertion is a comparison that must hold in the end, such as "lost = 0",
// "p99 < 50ms", "healthy.unread = 0", "heap < 512MiB" and "goroutines = start": a
// metric, of all or of one group, one of = < <= > >=, and a number, a duration or
// an amount of memory. See [Metrics] and [GroupMetrics].
type Assertion string

// Check is an assertion that has been understood.
type Check struct {
	// Group is the group whose metric it is, "" if it is that of all.
	Group  string
	Metric Metric
	// Compare is one of = < <= > >=.
	Compare string
	// Limit is what the metric is compared with, in the metric's unit, unless
	// Start is set: then it is what the metric was at the start.
	Limit float64
	Start bool
}

var comparison = regexp.MustCompile(`^\s*(\S+?)\s*(<=|>=|=|<|>)\s*(\S+)\s*$`)

// Check parses the assertion. Whether there is such a group only the scenario
// knows. Its errors are *[Error] without a place.
func (a Assertion) Check() (Check, error) {
	parts := comparison.FindStringSubmatch(string(a))
	if parts == nil {
		return Check{}, &Error{Problem: quoted(string(a)) + " is no comparison", Fix: `write it like "p99 < 50ms", with one of = < <= > >=`}
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

// Holds reports whether the assertion holds for the value of its metric, and
// the value of that at the start.
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

// assertion demands that an assertion can be understood, and that the group that
// it names, if any, has that metric.
func (c *checker) assertion(at string, a Assertion, s *Scenario) {
	check, err := a.Check()
	if err != nil {
		c.adopt(at, err)
		return
	}
	if check.Group == "" {
		return
	}
	var names []string
	for _, g := range s.groupNames() {
		if g.name != check.Group {
			names = append(names, g.name)
			continue
		}
		if own := GroupMetrics[g.part]; !slices.Contains(own, check.Metric.Name) {
			c.wrong(at, fmt.Sprintf("%s of %s have no %s of their own", g.part, shortened(g.name, maxQuoted), check.Metric.Name), "they have "+listed(own))
		}
		return
	}
	c.wrong(at, "there is no group "+quoted(check.Group), "there are "+listed(names))
}

func metricNames() string {
	names := make([]string, len(Metrics))
	for i, m := range Metrics {
		names[i] = m.Name
	}
	return strings.Join(names, ", ")
}

// parse reads a value as people write it.
func (u Unit) parse(text string) (float64, error) {
	switch u {
	case Time:
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			return d.Seconds(), nil
		}
		return 0, &Error{Problem: quoted(text) + " is no duration", Fix: "write it like 50ms or 1.5s"}
	case Bytes:
		if n, ok := parseBytes(text); ok {
			return n, nil
		}
		return 0, &Error{Problem: quoted(text) + " is no amount of memory", Fix: "write it like 512MiB, 1.5GiB or 1000000"}
	}
	if n, ok := parseNumber(text); ok {
		return n, nil
	}
	return 0, &Error{Problem: quoted(text) + " is no number of zero or more", Fix: "write it like 0 or 1500"}
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
