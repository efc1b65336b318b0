package report_test

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

func htmlOf(t *testing.T, r *report.Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteHTML(&b))
	return b.String()
}

var (
	svg    = regexp.MustCompile(`(?s)<svg.*?</svg>`)
	figure = regexp.MustCompile(`(?s)<figure.*?</figure>`)
)

func TestPageHasEveryChartWithItsData(t *testing.T) {
	page := htmlOf(t, sample())
	figures := figure.FindAllString(page, -1)
	require.Len(t, figures, 8)
	for i, id := range []string{"latency", "percentiles", "writes", "deliveries", "lag", "stalled", "heap", "goroutines"} {
		require.Contains(t, figures[i], `id="`+id+`"`)
		require.Regexp(t, `<path class="line s1" d="M[0-9.]+,[0-9.]+l?L?[0-9]`, figures[i], id)
		require.Contains(t, figures[i], `class="spot"`, id)
	}
	require.Contains(t, figures[0], "at 2.5s: max 100ms, p99 10ms, p50 1ms")
	require.Contains(t, figures[1], "99.9 %: end to end 50ms")
	require.Contains(t, figures[6], "at 5s: Heap 2.0 MiB")
}

func TestPageMarksFaultsOnTheTimeAxis(t *testing.T) {
	for i, f := range figure.FindAllString(htmlOf(t, sample()), -1) {
		if i == 1 {
			continue // it has no time axis
		}
		require.Equal(t, 1, strings.Count(f, `class="mark"`))
		require.Equal(t, 1, strings.Count(f, `class="band"`))
		require.Contains(t, f, "<title>break</title>")
	}
}

func TestPageLoadsNothingAndRunsNothing(t *testing.T) {
	page := htmlOf(t, sample())
	for _, forbidden := range []string{"<script", "http://", "https://", "@import", "url("} {
		require.NotContains(t, page, forbidden)
	}
	require.Contains(t, page, "prefers-color-scheme: dark")
}

func TestPageEscapesWhatPeopleWrote(t *testing.T) {
	r := sample()
	r.Scenario = `<b>"&`
	r.Faults[0].Name = "</title><script>alert(1)</script>"
	page := htmlOf(t, r)
	require.NotContains(t, page, "<storm>")
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "ZgotmplZ", "no context that the template distrusts")
	require.Contains(t, page, "A &lt;storm&gt; &amp; more")
}

func TestPageHasTheVerdict(t *testing.T) {
	r := sample()
	require.Contains(t, htmlOf(t, r), `class="badge broken"`)
	r.Broken = nil
	require.Contains(t, htmlOf(t, r), `class="badge failed"`)
	r.Assertions = r.Assertions[1:]
	require.Contains(t, htmlOf(t, r), `class="badge passed"`)
	r.Interrupted = true
	require.Contains(t, htmlOf(t, r), `class="badge interrupted"`)
}

// Values that are none, or all the same, make charts too; nothing is NaN.
func TestChartsOfUnusualValues(t *testing.T) {
	for _, samples := range [][]report.Sample{
		nil, {{}}, {{At: 1}}, {{At: 0}, {At: 0}}, {{At: 1, P50: 1e-9, Max: 4000, Heap: 1, Lag: 1 << 60}, {At: 2}},
	} {
		r := sample()
		r.Samples, r.Latency = samples, nil
		page := htmlOf(t, r)
		for _, s := range svg.FindAllString(page, -1) {
			require.NotContains(t, s, "NaN")
			require.NotContains(t, s, "Inf")
			d := xml.NewDecoder(strings.NewReader(s))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else {
					require.NoError(t, err, "the drawing is well formed")
				}
			}
		}
	}
}
