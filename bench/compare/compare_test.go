package compare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/bench/compare"
)

// script is a workload whose runs return prepared figures, round by round.
type script struct {
	figures map[string][]float64 // by contender
	order   []string
	failing string
}

func (s *script) next(name string) (bench.Result, error) {
	s.order = append(s.order, name)
	if name == s.failing {
		return nil, errors.New("out of order")
	}
	v := s.figures[name][0]
	s.figures[name] = s.figures[name][1:]
	return bench.Result{{Name: "rate", Unit: "/s", Value: v, Higher: true}}, nil
}

// plan compares watchmill with a rival, in as many rounds as there are figures.
func (s *script) plan(goals ...bench.Goal) compare.Plan {
	return compare.Plan{
		Others: func() func() float64 { return func() float64 { return 0 } },
		Rounds: len(s.figures["us"]),
		Ours:   bench.Contender{Name: "us"},
		Rivals: []bench.Contender{{Name: "them"}, {Name: "unable"}},
		Workloads: []bench.Workload{{
			ID: "W0", Text: "nothing", Goals: goals,
			Run: func(_ context.Context, c bench.Contender, _ bench.Params) (bench.Result, error) {
				return s.next(c.Name)
			},
			Floor: func(context.Context, bench.Params) (bench.Result, error) { return s.next("floor") },
			Able:  func(c bench.Contender) bool { return c.Name == "them" },
		}},
	}
}

func figures(us, them, floor []float64) map[string][]float64 {
	return map[string][]float64{"us": us, "them": them, "floor": floor}
}

func TestRun_AlternatesTheContenders(t *testing.T) {
	s := &script{figures: figures([]float64{1, 1, 1}, []float64{1, 1, 1}, []float64{1, 1, 1})}
	_, err := compare.Run(t.Context(), s.plan())
	require.NoError(t, err)
	require.Equal(t, []string{"us", "them", "floor", "floor", "them", "us", "us", "them", "floor"}, s.order)
}

// A round runs all workloads, and the report of the completed rounds is passed on after
// each, so that an interrupted run leaves them.
func TestRun_HandsOverTheReportAfterEachRound(t *testing.T) {
	s := &script{figures: figures([]float64{1, 2, 3, 4}, []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1})}
	plan := s.plan()
	second := plan.Workloads[0]
	second.ID = "W1"
	plan.Workloads, plan.Rounds = append(plan.Workloads, second), 2
	var medians [][]float64
	plan.Finished = func(report *compare.Report) error {
		rows := report.Rows()
		medians = append(medians, []float64{rows[0].Ours.Median, rows[1].Ours.Median})
		return nil
	}
	_, err := compare.Run(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{1, 2}, {2, 3}}, medians, "the first round of both, and the median of two")

	s.figures = figures([]float64{1, 2, 3, 4}, []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1})
	full := errors.New("no space left on device")
	plan.Finished = func(*compare.Report) error { return full }
	_, err = compare.Run(t.Context(), plan)
	require.ErrorIs(t, err, full)
	require.Len(t, s.figures["us"], 2, "the run ends")
}

// A ratio is computed within a round, in which a slow machine slows both.
func TestReport_RatiosAreTakenRoundByRound(t *testing.T) {
	s := &script{figures: figures([]float64{100, 10, 90}, []float64{50, 5, 30}, []float64{400, 40, 180})}
	report, err := compare.Run(t.Context(), s.plan(bench.Goal{Metric: "rate", Least: true, Bound: 2},
		bench.Goal{Metric: "rate", Bound: 3, To: bench.ToFloor}, bench.Goal{Metric: "rate", Bound: 1, To: bench.ToOne}))
	require.NoError(t, err)
	rows := report.Rows()
	require.Len(t, rows, 1)
	row := rows[0]
	require.Equal(t, "them", row.Rival)
	require.Equal(t, compare.Spread{Median: 90, Min: 10, Max: 100}, row.Ours)
	require.Equal(t, compare.Spread{Median: 2, Min: 2, Max: 3}, row.Ratio)
	require.Equal(t, compare.Spread{Median: 4, Min: 2, Max: 4}, row.Times, "of a rate, the floor's is divided by ours")
	require.True(t, row.Goals[0].Met)
	require.False(t, row.Goals[1].Met)
	require.False(t, row.Goals[2].Met)
}

// With an even number of rounds the median is between two of them.
func TestReport_MedianOfTwoRounds(t *testing.T) {
	s := &script{figures: figures([]float64{1, 3}, []float64{1, 1}, []float64{1, 1})}
	report, err := compare.Run(t.Context(), s.plan())
	require.NoError(t, err)
	require.Equal(t, compare.Spread{Median: 2, Min: 1, Max: 3}, report.Rows()[0].Ratio)
}

// Workloads with Apart run in a process of their own, for watchmill, the rival and
// the floor.
func TestRun_ApartWorkloadsInProcessesOfTheirOwn(t *testing.T) {
	s := &script{figures: figures([]float64{1}, []float64{2}, []float64{4})}
	plan := s.plan()
	plan.Workloads[0].Apart = true
	var apart []string
	plan.Apart = func(ctx context.Context, w bench.Workload, contender string) (bench.Result, error) {
		apart = append(apart, contender)
		return plan.Alone(ctx, w, contender)
	}
	report, err := compare.Run(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, []string{"us", "them", compare.Floor}, apart)
	require.Equal(t, compare.Spread{Median: 0.5, Min: 0.5, Max: 0.5}, report.Rows()[0].Ratio)

	_, err = plan.Alone(t.Context(), plan.Workloads[0], "unknown")
	require.ErrorContains(t, err, `no contender "unknown"`)
}

// A rival that measured zero gives no ratio and no verdict.
func TestReport_ZeroGivesNoRatio(t *testing.T) {
	s := &script{figures: figures([]float64{5}, []float64{0}, []float64{1})}
	report, err := compare.Run(t.Context(), s.plan(bench.Goal{Metric: "rate", Least: true, Bound: 1}))
	require.NoError(t, err)
	row := report.Rows()[0]
	require.False(t, row.Ratio.Known())
	require.False(t, row.Goals[0].Known)
	require.False(t, row.Goals[0].Met)
}

func TestRun_ReportsFailuresOfRivalsAndEndsWithOurs(t *testing.T) {
	t.Run("a rival's is reported, and the others go on", func(t *testing.T) {
		s := &script{figures: figures([]float64{5}, nil, []float64{1}), failing: "them"}
		report, err := compare.Run(t.Context(), s.plan())
		require.NoError(t, err)
		require.Equal(t, []string{"W0, them, round 1: out of order"}, report.Failures())
		require.False(t, report.Rows()[0].Theirs.Known())
		require.Contains(t, markdown(t, report), "Failed: W0, them, round 1: out of order.")
	})
	t.Run("ours ends the run", func(t *testing.T) {
		s := &script{figures: figures([]float64{5}, []float64{1}, []float64{1}), failing: "us"}
		_, err := compare.Run(t.Context(), s.plan())
		require.ErrorContains(t, err, "workload W0: out of order")
	})
}

func TestReport_WritesTables(t *testing.T) {
	s := &script{figures: figures([]float64{2_000_000}, []float64{1000}, []float64{4_000_000})}
	report, err := compare.Run(t.Context(), s.plan(bench.Goal{Metric: "rate", Least: true, Bound: 40}))
	require.NoError(t, err)
	text := markdown(t, report)
	lines := strings.Split(text[strings.Index(text, "|"):], "\n")
	require.Equal(t, "| workload | goal: measured       | met |", lines[0])
	require.Equal(t, "| W0       | rate ≥ 40×: 2k× them | yes |", lines[2])
	lines = strings.Split(text[strings.Index(text, "| workload | metric"):], "\n")
	require.Equal(t, "| workload | metric | ours | rival     | ours / rival (min to max) | goal  | met | floor | × floor |", lines[0])
	require.Equal(t, "| W0       | rate   | 2M/s | 1k/s them | 2k×                       | ≥ 40× | yes | 4M/s  | 2×      |", lines[2])
}

// Of several rivals the best decides, and one goal that is missed is the workload's.
func TestSummary_IsALineForEachWorkload(t *testing.T) {
	s := &script{figures: figures([]float64{100}, []float64{50}, []float64{400})}
	s.figures["others"] = []float64{80}
	plan := s.plan(bench.Goal{Metric: "rate", Least: true, Bound: 1.5}, bench.Goal{Metric: "rate", Bound: 5, To: bench.ToFloor})
	plan.Rivals = append(plan.Rivals, bench.Contender{Name: "others"})
	plan.Workloads[0].Able = func(c bench.Contender) bool { return c.Name != "unable" }
	report, err := compare.Run(t.Context(), plan)
	require.NoError(t, err)
	require.Contains(t, markdown(t, report), "| W0       | rate ≥ 1.5×: 1.25× others; rate ≤ 5× floor: 4× | **no** |")
}

// A goal may be about some rivals only: the others, which may be better, do not decide it.
func TestSummary_GoalIsJudgedByItsRivals(t *testing.T) {
	least := func(bound float64, rivals ...string) bench.Goal {
		return bench.Goal{Metric: "rate", Least: true, Bound: bound, Rivals: rivals}
	}
	s := &script{figures: map[string][]float64{"us": {6}, "them": {3}, "fast": {12}, "floor": {24}}}
	plan := s.plan(least(1, "them"), least(1))
	plan.Rivals = []bench.Contender{{Name: "them"}, {Name: "fast"}}
	plan.Workloads[0].Able = func(bench.Contender) bool { return true }
	report, err := compare.Run(t.Context(), plan)
	require.NoError(t, err)
	require.Contains(t, markdown(t, report), "rate ≥ 1×: 2× them; rate ≥ 1×: 0.5× fast")
	rows := report.Rows()
	require.Len(t, rows[0].Goals, 2)
	require.Len(t, rows[1].Goals, 1, "the row of the other rival has the goal about all")
}

// A goal about a rival that did not take part, or about a metric that was not measured, has no figure.
func TestSummary_GoalWithoutAFigureShowsNone(t *testing.T) {
	s := &script{figures: figures([]float64{4}, []float64{2}, []float64{8})}
	report, err := compare.Run(t.Context(), s.plan(
		bench.Goal{Metric: "rate", Least: true, Bound: 1, Rivals: []string{"absent"}},
		bench.Goal{Metric: "lost", To: bench.ToOne},
	))
	require.NoError(t, err)
	require.Contains(t, markdown(t, report), "| W0       | rate ≥ 1×: –; lost ≤ 0: – | –   |")
}

func TestReport_JSONKeepsEveryFigure(t *testing.T) {
	s := &script{figures: figures([]float64{1, 2}, []float64{3, 4}, []float64{5, 6})}
	report, err := compare.Run(t.Context(), s.plan())
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, report.WriteJSON(&b))
	var back compare.Report
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, compare.Schema, back.Schema)
	require.Equal(t, report.Machine, back.Machine)
	require.Equal(t, report.Workloads[0].Rounds, back.Workloads[0].Rounds)
}

func TestMachine_SaysHowItIsScheduled(t *testing.T) {
	m := compare.Machine{CPU: "one", Cores: 2, OS: "linux/amd64", Go: "go1"}
	require.Equal(t, "one, 2 cores, linux/amd64, go1.", m.String())
	m.RealTime = true
	require.Equal(t, "one, 2 cores, linux/amd64, go1, with real-time scheduling.", m.String())
}

func TestWriteInto_ReplacesWhatIsBetweenTheMarks(t *testing.T) {
	s := &script{figures: figures([]float64{1}, []float64{1}, []float64{1})}
	report, err := compare.Run(t.Context(), s.plan())
	require.NoError(t, err)
	table := markdown(t, report)
	path := filepath.Join(t.TempDir(), "README.md")

	for name, c := range map[string]struct{ before, after string }{
		"between the marks": {"# Title\n" + compare.Begin + "\nold\n" + compare.End + "\nrest\n",
			"# Title\n" + compare.Begin + "\n" + table + compare.End + "\nrest\n"},
		"an empty place": {compare.Begin + "\n" + compare.End, compare.Begin + "\n" + table + compare.End},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(c.before), 0o600))
			require.NoError(t, report.WriteInto(path))
			require.Equal(t, c.after, read(t, path))
			require.NoError(t, report.WriteInto(path))
			require.Equal(t, c.after, read(t, path), "a second time")
		})
	}
	t.Run("a new file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new.md")
		require.NoError(t, report.WriteInto(path))
		require.Equal(t, compare.Begin+"\n"+table+compare.End+"\n", read(t, path))
	})
	t.Run("no marks", func(t *testing.T) {
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
		require.ErrorIs(t, report.WriteInto(path), compare.ErrNoMarks)
		require.Equal(t, "mine", read(t, path))
	})
}

func markdown(t *testing.T, report *compare.Report) string {
	var b strings.Builder
	require.NoError(t, report.WriteMarkdown(&b))
	return b.String()
}

func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// A plan is workloads, the contender to compare, and its rivals.
func ExampleRun() {
	workloads, err := bench.Select([]string{"W9/get"})
	if err != nil {
		panic(err)
	}
	report, err := compare.Run(context.Background(), compare.Plan{
		Workloads: workloads, Ours: bench.Watchmill(), Rounds: 1, Small: true,
	})
	if err != nil {
		panic(err)
	}
	for _, row := range report.Rows() {
		fmt.Println(row.ID, row.Metric.Name, row.Ours.Median > 0)
	}
	// Output:
	// W9/get reads true
	// W9/get p50 true
	// W9/get p99 true
}
