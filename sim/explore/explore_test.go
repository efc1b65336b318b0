package explore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeedsHold(t *testing.T) {
	report, err := Run(t.Context(), Things(), Range{Seeds: 4000})
	require.NoError(t, err)
	requireNothing(t, report)
	t.Logf("%+v, %.0f messages per second", report.Counts, report.PerSecond())
}

func requireNothing(t *testing.T, r *Report) {
	t.Helper()
	if f := r.Finding; f != nil {
		t.Fatalf("seed %d: %s\nshort: %s\n%s\n%s\n\n%s", f.Seed, f.Problem, f.ShortProblem, f.Setup, strings.Join(f.Steps, "\n"), strings.Join(f.Trace, "\n"))
	}
}
