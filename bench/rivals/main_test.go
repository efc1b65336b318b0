package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/bench/compare"
)

// The command runs itself for workloads that are measured apart, and for clients. In a test
// that is this program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "--apart") {
		main()
		return
	}
	if bench.RunAsClients(context.Background()) {
		return
	}
	// The rival's wait for a revision leaves a goroutine for up to three seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

// A small run of every workload and contender writes all files.
func TestRun_SmallWritesAllFiles(t *testing.T) {
	dir := t.TempDir()
	c := command{Rounds: 5, Small: true, JSON: filepath.Join(dir, "run.json"), MD: filepath.Join(dir, "run.md"), Plots: filepath.Join(dir, "plots")}
	var out bytes.Buffer
	require.NoError(t, c.run(t.Context(), &out))

	text, err := os.ReadFile(c.JSON)
	require.NoError(t, err)
	var report compare.Report
	require.NoError(t, json.Unmarshal(text, &report))
	require.Equal(t, compare.Schema, report.Schema)
	require.Len(t, report.Workloads, len(workloads()))
	for _, m := range report.Workloads {
		require.Len(t, m.Rounds, 1, "a small run has one round")
		requireSane(t, m)
	}
	require.Empty(t, report.Failures())

	table, err := os.ReadFile(c.MD)
	require.NoError(t, err)
	require.Equal(t, compare.Begin+"\n"+out.String()+compare.End+"\n", string(table))

	for file, lines := range map[string][]string{
		"watchers.svg": {"watchmill", "k8s cacher", "the floor"}, "subscribers.svg": {"watchmill", "the floor"},
		"growth-writes.svg": {"watchers, of 10,000 objects", "objects, with 1,000 watchers"}, "growth-p99.svg": {"p99 in µs"},
	} {
		drawn, err := os.ReadFile(filepath.Join(c.Plots, file))
		require.NoError(t, err)
		for _, line := range lines {
			require.Contains(t, string(drawn), line, file)
		}
		require.NotContains(t, string(drawn), ">1T<", "an axis ends where the data does")
	}
}

// requireSane demands finite figures of every contender, throughput of watchmill
// and of each rival that did not lose everything, and no losses of watchmill.
func requireSane(t *testing.T, m compare.Measured) {
	r := m.Rounds[0]
	require.Positive(t, r.Ours[0].Value, m.ID)
	for _, name := range []string{bench.Lost, bench.LostWatches, bench.StalledLost, bench.ForceClosed} {
		if metric, ok := r.Ours.Get(name); ok {
			require.Zero(t, metric.Value, "%s: %s", m.ID, name)
		}
	}
	// W18, W19 and W21 compare sizes and levels, W23 two backends, W24 a backend with what
	// is below it, W25 is about staying alive; they have no rivals.
	number, _, _ := strings.Cut(m.ID, "/")
	alone := slices.Contains([]string{"W18", "W19", "W21", "W23", "W24", "W25"}, number)
	require.Equal(t, alone, len(r.Rivals) == 0, m.ID)
	results := []bench.Result{r.Ours, r.Floor}
	for _, rival := range r.Rivals {
		require.Empty(t, rival.Failed, "%s: %s", m.ID, rival.Name)
		if lost, _ := rival.Result.Get(bench.Lost); lost.Value < 100 {
			require.Positive(t, rival.Result[0].Value, "%s: %s", m.ID, rival.Name)
		}
		results = append(results, rival.Result)
	}
	for _, result := range results {
		for _, metric := range result {
			require.GreaterOrEqual(t, metric.Value, 0.0, "%s: %s", m.ID, metric.Name)
			require.False(t, math.IsInf(metric.Value, 0), "%s: %s", m.ID, metric.Name)
		}
	}
}

func TestApart_MeasuresMemoryInItsOwnProcess(t *testing.T) {
	c := command{Small: true, Rounds: 1}
	for _, w := range workloads() {
		require.Equal(t, slices.Contains([]string{"W7", "W7/handler", "W13", "W17/http1", "W17/http2", "W17/tls", "W19", "W25/selected", "W25/all", "W26/tls", "W26/clients", "W26/idle"}, w.ID), w.Apart, w.ID)
	}
	w, err := bench.Select([]string{"W7"})
	require.NoError(t, err)
	for _, contender := range []string{"watchmill", "k8s cacher", compare.Floor} {
		result, err := c.apart(t.Context(), w[0], contender)
		require.NoError(t, err)
		bytes, ok := result.Get(bench.BytesPerWatcher)
		require.True(t, ok)
		require.Positive(t, bytes.Value, contender)
	}
	_, err = c.apart(t.Context(), w[0], "unknown")
	require.ErrorContains(t, err, "run unknown apart")
}

func TestOnly_RefusesAnUnknownWorkload(t *testing.T) {
	c := command{Only: []string{"W1", "W99"}}
	err := c.run(context.Background(), &bytes.Buffer{})
	require.ErrorContains(t, err, `no workload "W99"`)
}

func TestOnly_SelectsWhatNeedsACluster(t *testing.T) {
	plan, err := (&command{Only: []string{"W24", "W1"}}).plan()
	require.NoError(t, err)
	var ids []string
	for _, w := range plan.Workloads {
		ids = append(ids, w.ID)
	}
	require.Equal(t, []string{"W1", "W24/1", "W24/64", "W24/512"}, ids)
}

// A comparison with an earlier revision is not written over that with all rivals.
func TestEarlier_RefusesMarkdownAndPlots(t *testing.T) {
	for _, c := range []command{
		{Rounds: 1, Earlier: "build", MD: "README.md"},
		{Rounds: 1, Earlier: "build", Plots: "plots"},
	} {
		err := c.Validate()
		require.ErrorContains(t, err, "--earlier")
		require.ErrorContains(t, err, "--md")
		require.ErrorContains(t, err, "--plots")
	}
	for _, c := range []command{
		{Rounds: 1, Earlier: "build", JSON: "run.json"},
		{Rounds: 1, MD: "README.md", Plots: "plots"},
	} {
		require.NoError(t, c.Validate())
	}
}

// The earlier revision's build is this test program.
func TestEarlier_IsTheOnlyRival(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := command{Earlier: self, Small: true, Rounds: 1, Only: []string{"W1", "W7/handler"}, JSON: filepath.Join(t.TempDir(), "run.json")}
	var out bytes.Buffer
	require.NoError(t, c.run(t.Context(), &out))
	require.Contains(t, out.String(), "earlier")

	text, err := os.ReadFile(c.JSON)
	require.NoError(t, err)
	var report compare.Report
	require.NoError(t, json.Unmarshal(text, &report))
	require.Len(t, report.Workloads, 2)
	for _, m := range report.Workloads {
		r := m.Rounds[0]
		require.Len(t, r.Rivals, 1, m.ID)
		require.Equal(t, "earlier", r.Rivals[0].Name)
		require.Empty(t, r.Rivals[0].Failed)
		require.Positive(t, r.Rivals[0].Result[0].Value)
		if m.ID == "W1" { // whose figures are fine enough to differ in each run
			require.NotEqual(t, r.Ours, r.Rivals[0].Result, "two runs are measured, not one twice")
		}
	}
	for _, row := range report.Rows() {
		require.Empty(t, row.Goals, "goals are about the other rivals")
	}
}
