package load

import (
	"slices"

	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// metrics returns the value of every metric that scenarios can assert and that was measured.
func (r *run) metrics(j *judgement, stages []report.Stage) map[string]float64 {
	m := map[string]float64{
		"lost":           float64(j.lost),
		"goroutines":     float64(r.goroutines),
		"engine-relists": float64(r.stats.Relists),
	}
	if !r.interrupted {
		m["stale"] = float64(r.stale())
	}
	r.addWatchers(m)
	r.addCalls(m)
	r.addSamples(m)
	for name, t := range timed {
		if stage := &stages[t.stage]; stage.Count > 0 {
			m[name] = t.value(stage)
		}
	}
	return m
}

// The indexes of the stages in the result of latencies.
const (
	stageEndToEnd = iota
	stageCommit
	stageCache
	stageDispatch
	stageHanded
	stageRead
	stageObject
	stageInformer
)

// timed are the metrics that are times. Each is a figure of a stage.
var timed = map[string]struct {
	stage int
	value func(*report.Stage) float64
}{
	"p50":          {stageEndToEnd, func(s *report.Stage) float64 { return s.P50 }},
	"p90":          {stageEndToEnd, func(s *report.Stage) float64 { return s.P90 }},
	"p99":          {stageEndToEnd, p99},
	"p99.9":        {stageEndToEnd, func(s *report.Stage) float64 { return s.P999 }},
	"max":          {stageEndToEnd, func(s *report.Stage) float64 { return s.Max }},
	"commit-p99":   {stageCommit, p99},
	"cache-p99":    {stageCache, p99},
	"dispatch-p99": {stageDispatch, p99},
	"handed-p99":   {stageHanded, p99},
	"read-p99":     {stageRead, p99},
	"object-p99":   {stageObject, p99},
	"informer-p99": {stageInformer, p99},
}

func p99(s *report.Stage) float64 { return s.P99 }

func (r *run) addWatchers(m map[string]float64) {
	for _, name := range []string{"duplicated", "failed", "reconnects", "relists", "conflated", "expired", "terminated", "panicked"} {
		m[name] = 0
	}
	if !r.interrupted {
		m["unread"] = 0
	}
	for w := range r.everyWatcher() {
		if r.isUnread(w) {
			m["unread"]++
		}
		m["duplicated"] += float64(w.trail.Disordered)
		m["failed"] += float64(oneIf(w.failed))
		m["reconnects"] += float64(w.reconnects)
		m["relists"] += float64(w.relists)
		m["conflated"] += float64(w.trail.Conflated)
		for _, end := range []string{"expired", "terminated", "panicked"} {
			m[end] += float64(w.ends[end])
		}
	}
}

func (r *run) addCalls(m map[string]float64) {
	m["writes"] = float64(r.total("writers", (*callers).successes))
	m["write-errors"] = float64(r.total("writers", (*callers).failures))
	m["unwritten"] = float64(r.total("writers", (*callers).omissions))
	m["reads"] = float64(r.total("readers", (*callers).successes) + r.total("caches", (*callers).successes))
	m["read-errors"] = float64(r.total("readers", (*callers).failures) + r.total("caches", (*callers).failures))
	m["missed-reads"] = float64(r.total("readers", (*callers).omissions) + r.total("caches", (*callers).omissions))
	m["deliveries"] = float64(r.delivered())
	m["writes/s"], m["deliveries/s"] = 0, 0
	if r.load > 0 {
		m["writes/s"] = m["writes"] / r.load.Seconds()
	}
	if r.took > 0 {
		m["deliveries/s"] = m["deliveries"] / r.took.Seconds()
	}
}

func (r *run) addSamples(m map[string]float64) {
	m["heap"] = 0
	for i, s := range r.sampler.samples {
		if i == 0 || s.At <= r.load.Seconds() { // later the judge computes what must have been seen
			m["heap"] = max(m["heap"], float64(s.Heap))
		}
	}
	if !r.showsLag() {
		return
	}
	m["stalled"], m["lag"] = 0, 0
	for _, s := range r.sampler.samples {
		m["stalled"] = max(m["stalled"], float64(s.Stalled))
	}
	for w := range r.everyWatcher() {
		m["lag"] = max(m["lag"], float64(w.lag.Load()))
	}
}

// showsLag reports whether it was measured how far watchers are behind: all of them show their
// watches, and some sample met one.
func (r *run) showsLag() bool {
	return !slices.ContainsFunc(r.groups, func(g *watchers) bool { return follows(g.spec) }) &&
		slices.ContainsFunc(r.sampler.samples, func(s report.Sample) bool { return s.Watches > 0 })
}

// assertions checks the plan's assertions.
func (r *run) assertions(rep *report.Report) (checked []report.Assertion) {
	for i, c := range r.plan.Checks {
		value, measured := valueOf(rep, c)
		checked = append(checked, report.Assertion{
			Text: string(r.plan.Assert[i]), Value: value, Unmeasured: !measured,
			Holds: measured && c.Holds(value, rep.GoroutinesBefore),
		})
	}
	return checked
}

// valueOf returns the value of the asserted metric, and whether it was measured: without
// events there is no percentile.
func valueOf(rep *report.Report, c scenario.Check) (value float64, measured bool) {
	name := c.Metric.Name
	if c.Group == "" {
		value, measured = rep.Metrics[name]
		return value, measured
	}
	for i := range rep.Groups {
		if g := &rep.Groups[i]; g.Name == c.Group {
			return ofGroup[name](g), c.Metric.Unit != scenario.Time || g.Measured > 0
		}
	}
	return 0, false
}

// ofGroup are the metrics of single groups.
var ofGroup = map[string]func(*report.Group) float64{
	"lost":       func(g *report.Group) float64 { return float64(g.Lost) },
	"unread":     func(g *report.Group) float64 { return float64(g.Unread) },
	"stale":      func(g *report.Group) float64 { return float64(g.Stale) },
	"expired":    func(g *report.Group) float64 { return float64(g.Ends["expired"]) },
	"terminated": func(g *report.Group) float64 { return float64(g.Ends["terminated"]) },
	"panicked":   func(g *report.Group) float64 { return float64(g.Ends["panicked"]) },
	"reconnects": func(g *report.Group) float64 { return float64(g.Reconnects) },
	"relists":    func(g *report.Group) float64 { return float64(g.Relists) },
	"p50":        func(g *report.Group) float64 { return g.P50 },
	"p99":        func(g *report.Group) float64 { return g.P99 },
	"max":        func(g *report.Group) float64 { return g.Max },
}
