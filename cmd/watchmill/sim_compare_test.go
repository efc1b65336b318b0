package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

// runFiles writes runs that differ in their p99, into a directory, and returns it
// with the names of the files.
func runFiles(t *testing.T, p99 ...float64) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	for i, v := range p99 {
		name := filepath.Join(dir, strconv.Itoa(i)+".json")
		f, err := os.Create(name)
		require.NoError(t, err)
		require.NoError(t, (&report.Report{Schema: report.Schema, Scenario: "s", Metrics: map[string]float64{"p99": v}}).WriteJSON(f))
		require.NoError(t, f.Close())
		files = append(files, name)
	}
	return dir, files
}

func compareRuns(t *testing.T, args ...string) (out string) {
	t.Helper()
	out, errs, status := command(t.Context(), append([]string{"sim", "compare"}, args...)...)
	require.Equal(t, exitOK, status, errs)
	require.Empty(t, errs)
	return out
}

func TestSimCompare_OfTwoRunsSaysThatItCannotTell(t *testing.T) {
	_, files := runFiles(t, 0.001, 0.002)
	out := compareRuns(t, files...)
	require.Contains(t, out, "p99                   1ms                  2ms             +100.0 %  ?\n")
	require.Contains(t, out, "one run of each side cannot tell")
	require.Equal(t, out, compareRuns(t, append([]string{"--"}, files...)...), "-- as elsewhere")
}

func TestSimCompare_TakesSeveralRunsOfEachSide(t *testing.T) {
	before, olds := runFiles(t, 0.001, 0.0011, 0.0012, 0.0013)
	after, news := runFiles(t, 0.002, 0.0021, 0.0022, 0.0023, 0.0024)
	require.NoError(t, os.WriteFile(filepath.Join(after, "page.html"), []byte("not mine"), 0o600))
	out := compareRuns(t, before, after)
	require.Contains(t, out, "s: an unknown revision (4 runs), then an unknown revision (5 runs)\n")
	require.Contains(t, out, "+91.3 %  p=0.016\n")
	require.Equal(t, out, compareRuns(t, append(append(olds, "--"), news...)...))
	require.Equal(t, out, compareRuns(t, append([]string{before, "--"}, news...)...))
}

func TestSimCompare_WithoutTwoSidesIsWrongUsage(t *testing.T) {
	_, files := runFiles(t, 1, 2, 3)
	for _, args := range [][]string{nil, files[:1], files, {files[0], "--"}, {files[0], "--", files[1], "--", files[2]}} {
		_, errs, status := command(t.Context(), append([]string{"sim", "compare"}, args...)...)
		require.Equal(t, exitUsage, status, args)
		require.NotEmpty(t, errs)
	}
	_, errs, status := command(t.Context(), append([]string{"sim", "compare", "--speed"}, files...)...)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "unknown flag --speed")
}

func TestSimCompare_RefusesWhatIsNoReport(t *testing.T) {
	_, files := runFiles(t, 1)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	dir := t.TempDir()
	at := func(name string, content []byte) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, content, 0o600))
		return name
	}
	for name, mention := range map[string]string{
		at("other", []byte(`{"schema":"watchmill.sim/0"}`)): "a report of another version",
		at("torn", whole[:len(whole)/2]):                    "a torn report",
		at("text", []byte("hello")):                         "not a report of a run",
		filepath.Join(dir, "none"):                          "no such file",
		dir:                                                 "there is no .json file in it",
	} {
		out, errs, status := command(t.Context(), "sim", "compare", files[0], name)
		require.Equal(t, exitUsage, status, name)
		require.Empty(t, out)
		require.Contains(t, errs, mention)
		require.Contains(t, errs, name)
	}
}
