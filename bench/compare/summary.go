package compare

import (
	"strings"

	"github.com/watchmill/watchmill/bench"
)

// summary returns the cells of a table that fits a screen: a line for each workload
// with goals, with what was measured for each goal, and whether all were met.
func (r *Report) summary() [][]string {
	cells := [][]string{{"workload", "goal: measured", "met"}}
	byID := map[string][]Row{}
	for _, row := range r.Rows() {
		byID[row.ID] = append(byID[row.ID], row)
	}
	for _, m := range r.Workloads {
		var texts []string
		met := "yes"
		for _, goal := range m.goals {
			row, verdict := furthestFromGoal(byID[m.ID], goal)
			texts = append(texts, goal.Metric+" "+goal.String()+": "+row.measured(goal)+row.against(goal))
			if word := verdict.word(); word != "yes" && met != "**no**" {
				met = word
			}
		}
		if len(texts) > 0 {
			cells = append(cells, []string{m.ID, strings.Join(texts, "; "), met})
		}
	}
	return cells
}

// furthestFromGoal returns the row of the goal's metric that is furthest from meeting the goal, so
// that the best of several rivals decides. If there is none, the row has no figures.
func furthestFromGoal(rows []Row, goal bench.Goal) (row Row, verdict Verdict) {
	first, unknown := true, spread(nil)
	row.Ours, row.Ratio, row.Times = unknown, unknown, unknown
	for _, r := range rows {
		if r.Metric.Name != goal.Metric || !goal.About(r.Rival) {
			continue
		}
		v := r.judge(goal)
		if first || v.Known && (!verdict.Known || goal.Least == (r.reference(goal).Median < row.reference(goal).Median)) {
			row, verdict, first = r, v, false
		}
	}
	return row, verdict
}

// reference returns the figure that the goal bounds.
func (r Row) reference(goal bench.Goal) Spread {
	switch goal.To {
	case bench.ToRival:
		return r.Ratio
	case bench.ToFloor:
		return r.Times
	}
	return r.Ours
}

// measured returns the figure that the goal bounds, as text.
func (r Row) measured(goal bench.Goal) string {
	s := r.reference(goal)
	if goal.To == bench.ToOne {
		return r.quantity(s)
	}
	return times(s)
}

// against names the rival that decides.
func (r Row) against(goal bench.Goal) string {
	if goal.To != bench.ToRival || r.Rival == "" {
		return ""
	}
	return " " + r.Rival
}
