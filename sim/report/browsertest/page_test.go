//go:build browser

package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// storm runs a shipped scenario with faults for a short time, once for all tests.
var storm = sync.OnceValues(func() (*report.Report, error) { return run("reconnect-storm", 1500*time.Millisecond) })

// run runs a shipped scenario in its small size, for the duration d if that is not zero.
func run(name string, d time.Duration) (*report.Report, error) {
	s, err := scenario.Shipped(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return sim.Run(ctx, s, sim.RunOptions{Resolve: scenario.Options{Small: true, Duration: d}})
}

// shipped are the runs of the shipped scenarios, in their small size.
var shipped = map[string]struct {
	report *report.Report
	err    error
}{}

func runShipped() {
	for _, name := range scenario.Library() {
		done := shipped[name]
		done.report, done.err = run(name, 0)
		shipped[name] = done
	}
}

// stormy returns a copy of the report of storm, changed by the function.
func stormy(t *testing.T, change func(*report.Report)) *report.Report {
	t.Helper()
	r, err := storm()
	require.NoError(t, err)
	changed := *r
	change(&changed)
	return &changed
}

// page writes a report's page and returns the name of its file.
func page(t *testing.T, r *report.Report) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, r.WriteHTML(f))
	require.NoError(t, f.Close())
	return file
}

// chartsOf returns the ids of the charts that a report's page has.
func chartsOf(r *report.Report) []string {
	charts := []string{"latency", "percentiles", "writes", "deliveries", "lag", "stalled", "heap", "others", "timers", "goroutines"}
	if len(r.Faults) > 0 {
		charts = append(charts, "faults")
	}
	return charts
}

// requireFine checks that the page shows the whole report, readably.
func requireFine(t *testing.T, r *report.Report, s seen) {
	t.Helper()
	charts := chartsOf(r)
	require.Equal(t, charts, s.Charts)
	require.Equal(t, charts, s.WithData, "every line of every chart can be seen")
	require.Empty(t, s.Unlabelled)
	require.Empty(t, s.CutOff)
	require.Empty(t, s.Overlapping)
	require.Empty(t, s.Faint)
	require.Equal(t, len(r.Faults) > 0, s.Faults > 0, "faults are marked over the charts")
	require.Empty(t, s.HighRows)
	require.False(t, s.Overflow, "nothing to scroll sideways")
	require.Equal(t, len(r.Assertions), s.Assertions)
}

// aboutPace reports whether an assertion is about speed, which other programs on the machine
// can reduce without an error of the engine.
func aboutPace(a report.Assertion) bool {
	asserted, _, _ := strings.Cut(a.Text, " ")
	return slices.ContainsFunc(scenario.Metrics, func(m scenario.Metric) bool {
		paced := m.Unit == scenario.Time || m.Unit == scenario.PerSecond || m.Name == "unwritten" || m.Name == "missed-reads"
		return paced && (asserted == m.Name || strings.HasSuffix(asserted, "."+m.Name))
	})
}

// Every shipped scenario passes its assertions in its small size, apart from those about
// pace, and its page shows the whole report.
func TestPage_ShippedScenariosPassAndTheirPagesAreFine(t *testing.T) {
	for _, name := range scenario.Library() {
		t.Run(name, func(t *testing.T) {
			r := shipped[name].report
			require.NoError(t, shipped[name].err)
			require.Empty(t, r.Broken)
			demanded := 0
			for _, a := range r.Assertions {
				if !aboutPace(a) {
					demanded++
					require.True(t, a.Holds, "%+v\n%v\n%+v", r.Assertions, r.Errors, r.Worst)
				}
			}
			require.NotZero(t, demanded)
			badge := map[bool]string{true: "passed", false: "failed"}[r.OK()]
			file := page(t, r)
			for _, theme := range []string{"light", "dark"} {
				s, _ := show(t, file, window{width: 1300, theme: theme})
				requireFine(t, r, s)
				require.Equal(t, badge, s.Badge)
			}
		})
	}
}

func TestPage_IsReadableInBothThemes(t *testing.T) {
	r := stormy(t, func(*report.Report) {})
	require.NotEmpty(t, r.Faults)
	require.NotEmpty(t, r.Assertions)
	file := page(t, r)
	themes := map[string]seen{}
	for _, theme := range []string{"light", "dark"} {
		s, shot := show(t, file, window{width: 1300, theme: theme})
		requireFine(t, r, s)
		require.Empty(t, s.Clipped)
		require.Greater(t, len(shot), 10_000)
		themes[theme] = s
	}
	require.NotEqual(t, themes["light"].Page, themes["dark"].Page)
	require.NotEqual(t, themes["light"].Text, themes["dark"].Text)
}

func TestPage_FitsNarrowWindows(t *testing.T) {
	r := stormy(t, func(*report.Report) {})
	file := page(t, r)
	for _, width := range []int64{360, 400, 700, 1000} {
		s, _ := show(t, file, window{width: width, theme: "light"})
		requireFine(t, r, s)
	}
}

// A remark may have to be scrolled to, but not what it is about.
func TestPage_ShowsVerdictsInNarrowWindows(t *testing.T) {
	r := stormy(t, func(r *report.Report) {
		r.Assertions = []report.Assertion{{Text: "lost = 0", Holds: true}, {Text: "p99 < 1us", Value: 0.1}}
		r.Disturbance.Others = 0.99
	})
	require.True(t, r.Disturbed())
	file := page(t, r)
	for _, width := range []int64{360, 400, 700} {
		s, _ := show(t, file, window{width: width, theme: "light"})
		requireFine(t, r, s)
		require.Zero(t, s.HiddenVerdicts, "at a width of %d", width)
	}
}

// Paper is white in dark mode, too, and cannot be scrolled.
func TestPage_FitsPaper(t *testing.T) {
	r := stormy(t, func(*report.Report) {})
	s, _ := show(t, page(t, r), window{width: 720, theme: "dark", media: "print"})
	requireFine(t, r, s)
	require.Empty(t, s.Clipped)
	require.Equal(t, "rgb(255, 255, 255)", s.Page)
}

// Every stage has a visible line.
func TestPage_ShowsEveryStage(t *testing.T) {
	r := stormy(t, func(r *report.Report) {
		r.Latency = slices.Clone(r.Latency)
		require.Len(t, r.Latency, 8, "of which this run has not met all")
		for i := range r.Latency {
			r.Latency[i].Curve = r.Latency[0].Curve
		}
	})
	file := page(t, r)
	for _, theme := range []string{"light", "dark"} {
		s, _ := show(t, file, window{width: 1300, theme: theme})
		requireFine(t, r, s)
	}
}

func TestPage_OfARunThatDidNotEndWell(t *testing.T) {
	for badge, change := range map[string]func(*report.Report){
		"interrupted": func(r *report.Report) { r.Interrupted, r.Assertions = true, nil },
		"failed":      func(r *report.Report) { r.Assertions = []report.Assertion{{Text: "p99 < 1us", Value: 0.1}} },
		"broken":      func(r *report.Report) { r.Broken = []string{"a-1 got MODIFIED at revision 3 after revision 3"} },
	} {
		r := stormy(t, change)
		file := page(t, r)
		for _, theme := range []string{"light", "dark"} {
			s, _ := show(t, file, window{width: 1300, theme: theme})
			requireFine(t, r, s)
			require.Equal(t, badge, s.Badge)
		}
	}
}

// A run that was stopped at once has no charts, and its page is fine.
func TestPage_OfARunWithoutSamples(t *testing.T) {
	s, _ := show(t, page(t, stormy(t, func(r *report.Report) {
		r.Samples, r.Latency, r.Worst, r.Faults, r.Interrupted = nil, nil, nil, nil, true
	})), window{width: 400, theme: "dark"})
	require.Empty(t, s.Charts)
	require.Empty(t, s.Faint)
	require.False(t, s.Overflow)
}
