package compare

import (
	"math"
	"slices"

	"github.com/watchmill/watchmill/bench"
)

// Spread is the median and the extremes of several rounds; NaN without figures.
type Spread struct{ Median, Min, Max float64 }

// spread returns the Spread of all figures that are not NaN.
func spread(all []float64) Spread {
	all = slices.DeleteFunc(all, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(all) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(all)
	half := len(all) / 2
	median := all[half]
	if len(all)%2 == 0 {
		median = (all[half-1] + all[half]) / 2
	}
	return Spread{median, all[0], all[len(all)-1]}
}

// Known reports whether s is not NaN.
func (s Spread) Known() bool { return !math.IsNaN(s.Median) }

// Row compares one metric of watchmill with that of one rival.
type Row struct {
	ID, Text string
	// Metric has the metric's name and unit; its value is the median of Ours.
	Metric bench.Metric
	// Rival is the rival's name, "" if none takes part.
	Rival string
	Ours  Spread
	// Theirs is the rival's figure, and Ratio ours divided by it, round by round.
	Theirs, Ratio Spread
	// Floor is the floor's figure, and Times our time as a multiple of the floor's.
	Floor, Times Spread
	Goals        []Verdict
}

// Verdict is a goal and whether it was met.
type Verdict struct {
	bench.Goal
	// Known is false if there was no reference.
	Known, Met bool
}

// Rows returns the rows of the table: for each workload, each metric and each
// rival.
func (r *Report) Rows() []Row {
	var rows []Row
	for _, m := range r.Workloads {
		for _, metric := range m.Rounds[0].Ours {
			for _, rival := range m.rivals() {
				rows = append(rows, m.row(metric, rival))
			}
		}
	}
	return rows
}

// rivals names the rivals in the order of the first round; {""} if there are none.
func (m Measured) rivals() []string {
	var names []string
	for _, rival := range m.Rounds[0].Rivals {
		names = append(names, rival.Name)
	}
	if names == nil {
		return []string{""}
	}
	return names
}

func (m Measured) row(metric bench.Metric, rival string) Row {
	row := Row{ID: m.ID, Text: m.Text, Metric: metric, Rival: rival}
	ours := m.each(metric.Name, func(r Round) bench.Result { return r.Ours })
	theirs := m.each(metric.Name, func(r Round) bench.Result { return r.rival(rival) })
	floor := m.each(metric.Name, func(r Round) bench.Result { return r.Floor })
	row.Ratio = spread(divide(ours, theirs))
	row.Times = spread(divide(ours, floor))
	if metric.Higher {
		row.Times = spread(divide(floor, ours))
	}
	row.Ours, row.Theirs, row.Floor = spread(ours), spread(theirs), spread(floor)
	row.Metric.Value = row.Ours.Median
	for _, goal := range m.goals {
		if goal.Metric == metric.Name && goal.About(rival) {
			row.Goals = append(row.Goals, row.judge(goal))
		}
	}
	return row
}

// each returns a metric of each round, NaN where it is missing.
func (m Measured) each(name string, of func(Round) bench.Result) []float64 {
	all := make([]float64, len(m.Rounds))
	for i, round := range m.Rounds {
		all[i] = math.NaN()
		if metric, ok := of(round).Get(name); ok {
			all[i] = metric.Value
		}
	}
	return all
}

// divide divides element by element.
func divide(a, b []float64) []float64 {
	quotients := make([]float64, len(a))
	for i := range a {
		quotients[i] = a[i] / b[i]
	}
	return quotients
}

// judge compares the median with the goal.
func (r Row) judge(goal bench.Goal) Verdict {
	measured := r.reference(goal)
	return Verdict{Goal: goal, Known: measured.Known(), Met: measured.Known() && goal.Met(measured.Median)}
}
