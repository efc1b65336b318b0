package report_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

func terminalText(t *testing.T, r *report.Report, terminal report.Terminal) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteTerminal(&b, terminal))
	return b.String()
}

// wordy returns a report with more remarks than fit beside its tables.
func wordy() *report.Report {
	r := sample()
	r.Worst[0].LastEnd = "watch handler panicked on \"ns-1/obj-1161\" at revision 4885: by the scenario"
	r.Groups[1].Ends = map[string]int{"expired": 20, "panicked": 10, "terminated": 80}
	r.Errors = append(r.Errors, "engine: too old revision: 3558 (oldest served is 3559): list again and watch from the list's revision")
	for _, name := range []string{"writes", "deliveries", "reconnects", "relists", "lag", "stalled", "read-errors"} {
		r.Metrics[name] = 12_345_678
	}
	return r
}

func TestText_FitsTheTerminal(t *testing.T) {
	plain := terminalText(t, wordy(), report.Terminal{})
	for _, width := range []int{80, 100, 120} {
		text := terminalText(t, wordy(), report.Terminal{Width: width})
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			require.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
			require.Equal(t, strings.TrimRight(line, " "), line, "no space at the end")
		}
		require.Equal(t, strings.Fields(plain), strings.Fields(text), "the same words")
	}
	narrow, wide := terminalText(t, wordy(), report.Terminal{Width: 80}), terminalText(t, wordy(), report.Terminal{Width: 160})
	require.Contains(t, narrow, "      2\n    unread, watch handler panicked on")
	require.Contains(t, narrow, "\nholds      p99 < 50ms               it is 12.3ms\n", "what fits stays as it is")
	require.Contains(t, wide, "      2  unread, watch handler panicked on")
	require.Regexp(t, `\nerror      engine: too old .*\n {11}.*the list's revision\n`, narrow)
}

func TestText_HasColoursOnlyIfAskedFor(t *testing.T) {
	require.NotContains(t, terminalText(t, sample(), report.Terminal{Width: 80}), "\x1b")
	r := sample()
	r.Interrupted = true
	coloured := terminalText(t, r, report.Terminal{Width: 80, Color: true})
	for _, mark := range []string{
		"\x1b[33mstopped    \x1b[0minterrupted", "\x1b[32mholds      \x1b[0mp99 < 50ms", "\x1b[31mFAILED     \x1b[0mlost = 0", "\x1b[31mBROKEN     \x1b[0ma-1 got",
	} {
		require.Contains(t, coloured, mark)
	}
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		coloured = strings.ReplaceAll(coloured, code, "")
	}
	require.Equal(t, terminalText(t, r, report.Terminal{Width: 80}), coloured)
}
