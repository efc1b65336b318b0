package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// written returns the name of a file with that content.
func written(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

func TestSimList_NamesAllShippedScenarios(t *testing.T) {
	out, errs, status := command(t.Context(), "sim", "list")
	require.Zero(t, status, errs)
	for _, name := range scenario.Library() {
		require.Contains(t, out, name+"\n")
	}
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, len(line), 80, line)
	}
}

func TestSimLint_PassesWhatCanBeRun(t *testing.T) {
	for _, name := range append(scenario.Library(), written(t, "watchers: [{}]\n")) {
		out, errs, status := command(t.Context(), "sim", "lint", name)
		require.Zero(t, status, errs)
		require.Equal(t, name+" is fine\n", out)
	}
}

// A run would refuse it, too.
func TestSimLint_RefusesATraceWithABadLine(t *testing.T) {
	file := written(t, "watchers: [{}]\nwriters: [{trace: past.ndjson}]\n")
	past := filepath.Join(filepath.Dir(file), "past.ndjson")
	require.NoError(t, os.WriteFile(past, []byte(`{"t":1,"op":"put","key":"a","version":"1"}`+"\n"+`{"t":2,"op":"move","key":"a"}`), 0o600))
	for _, verb := range []string{"lint", "run"} {
		out, errs, status := command(t.Context(), "sim", verb, file)
		require.Equal(t, exitUsage, status)
		require.Empty(t, out)
		require.Contains(t, errs, past+":2: unknown op")
	}
}

// A run of the full size is not what was asked for.
func TestSim_RefusesSmallForAScenarioWithoutIt(t *testing.T) {
	for _, verb := range []string{"run", "explain"} {
		file := written(t, "watchers: [{}]\n")
		out, errs, status := command(t.Context(), "sim", verb, "--small", file)
		require.Equal(t, exitUsage, status)
		require.Empty(t, out)
		require.Equal(t, "watchmill: invalid configuration: --small is given, but "+file+" has no small size; leave it out, or add small to the scenario\n", errs)
	}
}

func TestSimExplain_PrintsWhatWouldRun(t *testing.T) {
	out, errs, status := command(t.Context(), "sim", "explain", "--small", "--seed", "7", "kubelets")
	require.Zero(t, status, errs)
	require.Contains(t, out, "seed: 7\n")
	require.Contains(t, out, "count: 15000\n")
	again, errs, status := command(t.Context(), "sim", "explain", written(t, out))
	require.Zero(t, status, errs)
	require.Equal(t, out, again, "its output is a scenario, which says of itself the same")
}

func TestSimExplain_MovesTheTimelineWithTheDuration(t *testing.T) {
	out, errs, status := command(t.Context(), "sim", "explain", "--duration", "1m", "configmaps")
	require.Zero(t, status, errs)
	require.Contains(t, out, "duration: 1m0s\n")
	require.Contains(t, out, "#        20s  break\n")
}

// Zero would be the scenario's own value, and not what was asked for.
func TestSim_RefusesASeedOrADurationThatWouldChangeNothing(t *testing.T) {
	for flag, problem := range map[string]string{
		"--seed=0":       "--seed is 0; give a seed from 1",
		"--duration=0s":  "--duration is 0s; give one above 0, such as 2m, up to 24h0m0s",
		"--duration=-1m": "--duration is -1m0s; give one above 0, such as 2m, up to 24h0m0s",
		"--duration=25h": "--duration is 25h0m0s; give one above 0, such as 2m, up to 24h0m0s",
	} {
		for _, verb := range []string{"run", "explain"} {
			out, errs, status := command(t.Context(), "sim", verb, flag, written(t, quick))
			require.Equal(t, exitUsage, status, flag)
			require.Empty(t, out)
			require.Equal(t, "watchmill: invalid configuration: "+problem+"\n", errs)
		}
	}
}

func TestSim_WrongUsageNamesTheCommandWhoseHelpToRead(t *testing.T) {
	for hint, args := range map[string][]string{
		"Run watchmill --help":         {"sum"},
		"Run watchmill sim --help":     {"sim"},
		"Run watchmill sim run --help": {"sim", "run", "--sede=5", "kubelets"},
	} {
		_, errs, status := command(t.Context(), args...)
		require.Equal(t, exitUsage, status)
		require.Contains(t, errs, hint)
	}
}

// Each bad scenario exits with 2, and says where, what is wrong, and what is
// allowed.
func TestSim_BadScenariosExitWithTwo(t *testing.T) {
	dir := t.TempDir()
	for content, mentions := range map[string][]string{
		"watchers: [{}]\nspeed: 3\n":               {"mine.yaml:2:1: speed:", "no such field", "there are name,"},
		"writers:\n  - {rate: -5}\n":               {"mine.yaml:2:6: writers[0].rate:", "negative", "such as 500"},
		"watchers:\n  - {fields: node}\n":          {"mine.yaml:2:6: watchers[0].fields:", "does not parse", "write it like"},
		"watchers: [{}]\nassert:\n  - p98 < 5ms\n": {"mine.yaml:3:5: assert[0]:", `no metric "p98"`, "there are lost,"},
		"":                                       {"mine.yaml:1:1:", "empty"},
		"\x00\x01{{{":                            {"mine.yaml:1:", "write"},
		strings.Repeat("[", 100_000):             {"mine.yaml:1:1:", "more than 65536 bytes"},
		"watchers: " + strings.Repeat("[", 1000): {"mine.yaml:1:30:", "more than 20 lists"},
		"watchers: [{}]\nassert: [" + strings.Repeat("x", 4000) + "]\n": {"mine.yaml:2:10:", "not a comparison"},
	} {
		file := written(t, content)
		for _, args := range [][]string{{"sim", "lint", file}, {"sim", "explain", file}} {
			out, errs, status := command(t.Context(), args...)
			require.Equal(t, exitUsage, status, content)
			require.Empty(t, out, content)
			require.True(t, strings.HasPrefix(errs, file+":"), "editors find the place: %s", errs)
			require.Less(t, len(errs), 1000, "little of the file is shown")
			for _, mention := range mentions {
				require.Contains(t, errs, mention)
			}
		}
	}
	for mention, name := range map[string]string{
		"there are configmaps,": "kubelet",
		"no such file":          filepath.Join(dir, "none.yaml"),
		"is a directory":        dir,
	} {
		_, errs, status := command(t.Context(), "sim", "lint", name)
		require.Equal(t, exitUsage, status)
		require.Contains(t, errs, mention)
	}
}
