package load

import (
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// assertions checks what the plan asserts.
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

// valueOf returns the value of what is asserted, and whether anything was measured: of no
// events there is no percentile, least of all a short one.
func valueOf(rep *report.Report, c scenario.Check) (value float64, measured bool) {
	t, isTime := timed[c.Metric.Name]
	if c.Group == "" {
		return rep.Metrics[c.Metric.Name], !isTime || rep.Latency[t.stage].Count > 0
	}
	for i := range rep.Groups {
		if g := &rep.Groups[i]; g.Name == c.Group {
			return ofGroup[c.Metric.Name](g), !isTime || g.Measured > 0
		}
	}
	return 0, false
}

// ofGroup are the metrics that groups have of their own.
var ofGroup = map[string]func(*report.Group) float64{
	"lost":       func(g *report.Group) float64 { return float64(g.Lost) },
	"unread":     func(g *report.Group) float64 { return float64(g.Unread) },
	"stale":      func(g *report.Group) float64 { return float64(g.Unread) }, // as of informers
	"expired":    func(g *report.Group) float64 { return float64(g.Ends["expired"]) },
	"terminated": func(g *report.Group) float64 { return float64(g.Ends["terminated"]) },
	"panicked":   func(g *report.Group) float64 { return float64(g.Ends["panicked"]) },
	"reconnects": func(g *report.Group) float64 { return float64(g.Reconnects) },
	"relists":    func(g *report.Group) float64 { return float64(g.Relists) },
	"p50":        func(g *report.Group) float64 { return g.P50 },
	"p99":        func(g *report.Group) float64 { return g.P99 },
	"max":        func(g *report.Group) float64 { return g.Max },
}
