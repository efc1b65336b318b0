package load

import (
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// assertions checks what the plan asserts.
func (r *run) assertions(rep *report.Report) (checked []report.Assertion) {
	for i, c := range r.plan.Checks {
		value, measured := valueOf(rep, c.Metric)
		checked = append(checked, report.Assertion{
			Text: string(r.plan.Assert[i]), Value: value, Unmeasured: !measured,
			Holds: measured && c.Holds(value, rep.GoroutinesBefore),
		})
	}
	return checked
}

// valueOf returns the value of a metric, and whether anything was measured: of no
// events there is no percentile, least of all a short one.
func valueOf(rep *report.Report, m scenario.Metric) (value float64, measured bool) {
	t, isTime := timed[m.Name]
	return rep.Metrics[m.Name], !isTime || rep.Latency[t.stage].Count > 0
}
