//go:build browser

package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// storm is a run of a shipped scenario with faults, made once.
var storm = sync.OnceValues(func() (*report.Report, error) { return run("reconnect-storm") })

// run runs a shipped scenario for a moment.
func run(name string) (*report.Report, error) {
	s, err := scenario.Shipped(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return sim.Run(ctx, s, sim.RunOptions{Resolve: scenario.Options{Small: true, Duration: 1500 * time.Millisecond}})
}

// stormy returns a copy of that run, changed.
func stormy(t *testing.T, change func(*report.Report)) *report.Report {
	t.Helper()
	r, err := storm()
	require.NoError(t, err)
	changed := *r
	change(&changed)
	return &changed
}

// page returns the file of a report's page.
func page(t *testing.T, r *report.Report) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, r.WriteHTML(f))
	require.NoError(t, f.Close())
	return file
}

var charts = []string{"latency", "percentiles", "writes", "deliveries", "lag", "stalled", "heap", "goroutines", "faults"}

// requireFine requires that all is there, and can be read.
func requireFine(t *testing.T, s seen) {
	t.Helper()
	require.Equal(t, charts, s.Charts)
	require.Equal(t, charts, s.WithData, "every line of every chart can be seen")
	require.Empty(t, s.Unlabelled)
	require.Empty(t, s.CutOff)
	require.Empty(t, s.Overlapping)
	require.Empty(t, s.Faint)
	require.Positive(t, s.Faults)
	require.Empty(t, s.HighRows)
	require.False(t, s.Overflow, "nothing to scroll sideways")
}

func TestPageIsReadableInBothThemes(t *testing.T) {
	file := page(t, stormy(t, func(r *report.Report) {}))
	themes := map[string]seen{}
	for _, theme := range []string{"light", "dark"} {
		s, shot := show(t, file, window{width: 1300, theme: theme})
		requireFine(t, s)
		require.Positive(t, s.Assertions)
		require.Empty(t, s.Clipped)
		require.Greater(t, len(shot), 10_000)
		themes[theme] = s
	}
	require.NotEqual(t, themes["light"].Page, themes["dark"].Page)
	require.NotEqual(t, themes["light"].Text, themes["dark"].Text)
}

func TestPageFitsNarrowWindows(t *testing.T) {
	file := page(t, stormy(t, func(r *report.Report) {}))
	for _, width := range []int64{360, 400, 700, 1000} {
		s, _ := show(t, file, window{width: width, theme: "light"})
		requireFine(t, s)
	}
}

// Paper is white whatever the screen is, and nobody scrolls on it.
func TestPageFitsPaper(t *testing.T) {
	file := page(t, stormy(t, func(r *report.Report) {}))
	s, _ := show(t, file, window{width: 720, theme: "dark", media: "print"})
	requireFine(t, s)
	require.Empty(t, s.Clipped)
	require.Equal(t, "rgb(255, 255, 255)", s.Page)
}

// Every stage that there is has a line that can be seen.
func TestPageShowsEveryStage(t *testing.T) {
	file := page(t, stormy(t, func(r *report.Report) {
		r.Latency = slices.Clone(r.Latency)
		require.Len(t, r.Latency, 8, "of which this run has not met all")
		for i := range r.Latency {
			r.Latency[i].Curve = r.Latency[0].Curve
		}
	}))
	for _, theme := range []string{"light", "dark"} {
		s, _ := show(t, file, window{width: 1300, theme: theme})
		requireFine(t, s)
	}
}

func TestPageOfARunThatDidNotEndWell(t *testing.T) {
	for badge, change := range map[string]func(*report.Report){
		"interrupted": func(r *report.Report) { r.Interrupted, r.Assertions = true, nil },
		"failed":      func(r *report.Report) { r.Assertions = []report.Assertion{{Text: "p99 < 1us", Value: 0.1}} },
		"broken":      func(r *report.Report) { r.Broken = []string{"a-1 got MODIFIED at revision 3 after revision 3"} },
	} {
		file := page(t, stormy(t, change))
		for _, theme := range []string{"light", "dark"} {
			s, _ := show(t, file, window{width: 1300, theme: theme})
			requireFine(t, s)
			require.Equal(t, badge, s.Badge)
			require.Equal(t, badge != "interrupted", s.Assertions > 0)
		}
	}
}

// A run that was stopped at once has no charts, and its page is fine.
func TestPageOfARunWithoutSamples(t *testing.T) {
	s, _ := show(t, page(t, stormy(t, func(r *report.Report) {
		r.Samples, r.Latency, r.Worst, r.Faults, r.Interrupted = nil, nil, nil, nil, true
	})), window{width: 400, theme: "dark"})
	require.Empty(t, s.Charts)
	require.Empty(t, s.Faint)
	require.False(t, s.Overflow)
}
