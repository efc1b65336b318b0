package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

func compared(t *testing.T, before, after *report.Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, report.Compare(before, after).WriteText(&b))
	return b.String()
}

func TestCompareSaysWhatChangedAndByHowMuch(t *testing.T) {
	before, after := sample(), sample()
	after.Build.Revision, after.Build.Modified = "0123456789abcdef", true
	after.Metrics["p99"] = 0.0246
	after.Metrics["writes/s"] = 900
	after.Metrics["lost"] = 0
	after.Metrics["stalled"] = 5
	after.Metrics["deliveries"] = 5_000_000
	after.Assertions[0].Holds, after.Assertions[1].Holds = true, false
	text := compared(t, before, after)
	for _, line := range []string{
		"storm, seed 7: abc, then 0123456789ab, modified\n",
		"lost                          2              0   -100.0 %\n",
		"stalled                       0              5  from none\n",
		"writes/s                1,000/s          900/s    -10.0 %\n",
		"deliveries              250,000      5,000,000      20.0x\n",
		"p99                      12.3ms         24.6ms   +100.0 %\n",
		"assertion  lost = 0 holds now\n",
		"assertion  p99 < 50ms no longer holds\n",
	} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, "heap", "it has not changed")
	require.NotContains(t, text, "note")
}

func TestCompareWarnsOfWhatCannotBeCompared(t *testing.T) {
	before, after := sample(), sample()
	after.Plan, after.Build.CPUs, after.Build.Go, after.Interrupted = "fedcba9876543210", 8, "go9", true
	text := compared(t, before, after)
	require.Contains(t, text, "note       the plans differ: 0123456789ab before, fedcba987654 after\n")
	require.Contains(t, text, "note       the machines differ: a CPU, 2 of 2 CPUs, linux/amd64 before, a CPU, 2 of 8 CPUs, linux/amd64 after\n")
	require.Contains(t, text, "note       Go differs")
	require.Contains(t, text, "note       one of them was interrupted: complete before, interrupted after\n")
	require.Contains(t, compared(t, before, sample()), "nothing changed")
}
