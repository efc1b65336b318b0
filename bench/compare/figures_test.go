package compare_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README shows figures of the table in bench/README.md, and none of an earlier table.
func TestReadme_HasTheFiguresOfTheTable(t *testing.T) {
	table := measured(t, "../README.md")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "\n### How fast it is\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, shown := range []struct{ workload, metric, ours, rivals string }{
		{"W1", "deliveries", "| %s, nothing lost |", "| %s, and "},
		{"W1", "lost", "", "and %s lost: watches that fall behind are closed |"},
		{"W3", "p50", "takes %s here", "and %s there"},
		{"W7", "bytes/watcher", "| %s and ", "| %s and "},
		{"W7/handler", "bytes/watcher", "and %s, no goroutine |", "and %s, one and two goroutines |"},
		{"W10", "p99", "p99 | %s |", "| %s |"},
		{"W11", "all current", "all are current after %s |", "| after %s |"},
		{"W13", "overhead/object", "| %s |", "| %s |"},
		{"W14", "deliveries", "| %s |", "| %s |"},
		{"W16/saturated", "deliveries", "| %s, nothing lost |", "| %s, and "},
		{"W16/saturated", "lost", "", "and %s lost |"},
	} {
		figures, known := table[shown.workload+" "+shown.metric]
		require.True(t, known, "the table has no %s of %s", shown.metric, shown.workload)
		for i, text := range []string{shown.ours, shown.rivals} {
			require.Contains(t, section, strings.Replace(text, "%s", figures[i], 1), "%s of %s", shown.metric, shown.workload)
		}
	}
}

// measured returns our figure and the rival's of each metric of the results in a file, as they are
// written in prose.
func measured(t *testing.T, path string) map[string][2]string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	_, results, found := strings.Cut(string(text), "<!-- bench: begin -->")
	require.True(t, found)
	figures := map[string][2]string{}
	workload := ""
	for line := range strings.Lines(results) {
		cells := strings.Split(line, "|")
		if len(cells) < 10 { // the summary has fewer
			continue
		}
		if name := strings.TrimSpace(cells[1]); name != "" {
			workload = name
		}
		if metric := strings.TrimSpace(cells[2]); metric != "" {
			figures[workload+" "+metric] = [2]string{inProse(cells[3]), inProse(cells[4])}
		}
	}
	return figures
}

var figure = regexp.MustCompile(`^([0-9.]+) ?([kM]?) ?(B|/s|ms|µs|s|%)`)

// inProse returns the figure at the start of a cell with a blank before its unit.
func inProse(cell string) string {
	parts := figure.FindStringSubmatch(strings.TrimSpace(cell))
	switch {
	case parts == nil:
		return strings.TrimSpace(cell)
	case parts[3] == "%":
		return parts[1] + "%"
	}
	return parts[1] + " " + parts[2] + parts[3]
}
