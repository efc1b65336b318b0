package bench

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Metric is one figure of a result.
type Metric struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	// Higher says that a higher value is better; otherwise a lower one is.
	Higher bool `json:"higher"`
}

// Microseconds is the unit of times.
const Microseconds = "µs"

// The metrics that several workloads have.
const (
	Deliveries  = "deliveries"
	Writes      = "writes"
	P50         = "p50"
	P99         = "p99"
	Max         = "max"
	Lost        = "lost"
	LostWatches = "watchers lost"
)

// Result is what one run of a workload measured: throughput, latency and losses.
type Result []Metric

// Get returns the metric of that name.
func (r Result) Get(name string) (Metric, bool) {
	for _, m := range r {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// only returns the metrics of these names.
func (r Result) only(names ...string) Result {
	var some Result
	for _, m := range r {
		if slices.Contains(names, m.Name) {
			some = append(some, m)
		}
	}
	return some
}

// rate returns the metric of n per second over d.
func rate(name string, n int64, d time.Duration) Metric {
	return Metric{Name: name, Unit: "/s", Value: float64(n) / d.Seconds(), Higher: true}
}

// micros returns the metric of d in microseconds.
func micros(name string, d time.Duration) Metric {
	return Metric{Name: name, Unit: Microseconds, Value: float64(d.Nanoseconds()) / 1e3}
}

// count returns a metric of which less is better.
func count(name string, n int64) Metric { return Metric{Name: name, Value: float64(n)} }

// percent returns part as a percentage of all.
func percent(name string, part, all int64) Metric {
	return Metric{Name: name, Unit: "%", Value: 100 * float64(part) / float64(max(all, 1))}
}

// highestLatency is the upper bound of recorded latencies.
const highestLatency = 5 * time.Minute

// latency is a histogram of latencies, for one goroutine at a time.
type latency struct{ hist *hdrhistogram.Histogram }

func newLatency() latency {
	return latency{hdrhistogram.New(1, highestLatency.Nanoseconds(), 3)}
}

// add records a latency in nanoseconds.
func (l latency) add(ns int64) {
	// The value is limited to the range of the histogram, so there is no error.
	_ = l.hist.RecordValue(min(max(ns, 1), highestLatency.Nanoseconds()))
}

// at returns the latency that percent of all do not exceed.
func (l latency) at(percent float64) time.Duration {
	return time.Duration(l.hist.ValueAtQuantile(percent))
}

// metrics returns the median and the 99th percentile.
func (l latency) metrics() Result { return Result{micros(P50, l.at(50)), micros(P99, l.at(99))} }

// String prints the metric with a unit that suits its size.
func (m Metric) String() string {
	if m.Unit != Microseconds {
		return Quantity(m.Value) + m.Unit
	}
	d := time.Duration(m.Value * 1e3)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.3g µs", m.Value)
	}
}

// Quantity prints v with three figures, in thousands (k), millions (M), thousand millions
// (G) or millions of millions (T).
func Quantity(v float64) string {
	unit := ""
	for _, next := range []string{"k", "M", "G", "T"} {
		if math.Abs(v) < 999.5 { // else three figures would be 1e+03
			break
		}
		v, unit = v/1e3, next
	}
	return fmt.Sprintf("%.3g", v) + unit
}
