package report_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
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

func TestPage_HasEveryChartWithItsData(t *testing.T) {
	page := htmlOf(t, sample())
	figures := figure.FindAllString(page, -1)
	require.Len(t, figures, 11)
	for i, id := range []string{"latency", "percentiles", "writes", "deliveries", "lag", "stalled", "heap", "others", "timers", "goroutines"} {
		require.Contains(t, figures[i], `id="`+id+`"`)
		require.Regexp(t, `<path class="line s1" d="M[0-9.]+,[0-9.]+l?L?[0-9]`, figures[i], id)
		require.Contains(t, figures[i], `class="spot"`, id)
	}
	require.Contains(t, figures[0], "at 2.5s: max 100ms, p99 10ms, p50 1ms; fault: slow<")
	require.Contains(t, figures[1], "99.9 %: end to end 50ms")
	require.Contains(t, figures[6], "at 5s: Heap 2.0 MiB<")
	require.Contains(t, figures[7], "at 2.5s: Other programs 3 %;")
	require.Contains(t, figures[8], "at 2.5s: Late timers 2ms;")
	require.Contains(t, figures[10], `id="faults"`)
}

func TestPage_NamesTheUnitsOfItsAxes(t *testing.T) {
	figures := figure.FindAllString(htmlOf(t, sample()), -1)
	for i, axes := range [][2]string{
		{"time, logarithmic", "seconds since the load began"}, {"time, logarithmic", "percentile"},
		{"writes per second", "seconds since the load began"}, {"events per second", "seconds since the load began"},
		{"events", "seconds since the load began"}, {"watchers", "seconds since the load began"},
		{"memory", "seconds since the load began"}, {"% of the processors", "seconds since the load began"},
		{"milliseconds", "seconds since the load began"}, {"goroutines", "seconds since the load began"},
	} {
		for _, axis := range axes {
			require.Regexp(t, `<text class="caption"[^>]*>`+axis+`</text>`, figures[i])
		}
	}
	require.Contains(t, figures[3], ">60k</text>")
	require.Contains(t, figures[6], ">2 MiB</text>")
}

// Every stage has a line with its own colour.
func TestPage_HasAColourForEveryStage(t *testing.T) {
	r := sample()
	for len(r.Latency) < 8 {
		r.Latency = append(r.Latency, r.Latency[0])
	}
	page := htmlOf(t, r)
	for n := range 8 {
		require.Contains(t, page, fmt.Sprintf(`<path class="line s%d"`, n+1))
		require.Contains(t, page, fmt.Sprintf(`.s%d { stroke: var(--c%d); }`, n+1, n+1))
		require.Equal(t, 2, strings.Count(page, fmt.Sprintf("--c%d: #", n+1)), "in light and in dark")
	}
}

func TestPage_SaysInWordsWhatItsChartsShow(t *testing.T) {
	page := htmlOf(t, sample())
	for _, label := range []string{
		"gaps had none: max from 50ms to 100ms; p99 from 10ms to 20ms; p50 from 1ms to 1ms",
		"Heap, objects, dead ones too until they are collected: Heap from 1.0 MiB to 3.0 MiB",
		"Stalled watchers, farther behind than their buffer: Stalled watchers from 0 to 3",
		"Faults over time: 1 of break; 1 of slow",
	} {
		require.Regexp(t, `role="img" aria-label="[^"]*`+regexp.QuoteMeta(label)+`"`, page)
	}
	require.Equal(t, strings.Count(page, `class="card table`), strings.Count(page, `role="region" aria-label="`), "every table that scrolls has a name")
	require.NotContains(t, page, "<th></th>")
	require.NotContains(t, page, "none at any time")
	r := sample()
	r.Samples[1].Stalled = 0
	require.Contains(t, htmlOf(t, r), "none at any time</text>")
}

// rows returns the cells of the tables of a page, by what the tables are of.
func rows(t *testing.T, page string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range regexp.MustCompile(`(?s)role="region" aria-label="([^"]*)".*?</table>`).FindAllStringSubmatch(page, -1) {
		for _, row := range strings.Split(table[0], "</tr>") {
			cells := regexp.MustCompile(`(?s)<t[dh][^>]*>(.*?)</t[dh]>`).FindAllStringSubmatch(row, -1)
			var texts []string
			for _, cell := range cells {
				texts = append(texts, strings.TrimSpace(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(cell[1], "")))
			}
			if len(texts) > 0 {
				all[table[1]] = append(all[table[1]], strings.Join(texts, " | "))
			}
		}
	}
	return all
}

func TestPage_HasATableOfEachPart(t *testing.T) {
	r := sample()
	r.Groups[0].Measured, r.Groups[0].P99, r.Groups[0].Max = 1, 0.002, 0.003
	r.Worst[0].Reconnects, r.Worst[0].Relists = 1234, 5
	r.Worst = append(r.Worst, report.Watcher{Name: "a-2"})
	r.Metrics["p50"], r.Metrics["deliveries/s"] = 0.001, 50_000
	page := htmlOf(t, r)
	tables := rows(t, page)
	require.Equal(t, []string{
		"stage | events | latency mean | p50 | p90 | p99 | p99.9 | max | from, to",
		"end to end | 250,000 | 2ms | 1ms | 5ms | 12.3ms | 50ms | 100ms | from here to there",
	}, tables["Latency by stage"])
	require.Equal(t, []string{
		"group | kind | count | events | latency p50 | p99 | max | lost | remarks",
		"w | writers | 2 | 5,000 | 1ms | 2ms | 3ms | 0 | 17 failed, 3 not made in time",
		"i | informers | 1 | 0 | – | – | – | 0 | 2 stale",
		"a | watchers | 50 | 250,000 | – | – | – | 2 | slow, 2 lost, 1 unread, 2 expired, 1 panicked",
	}, tables["Groups"])
	require.Equal(t, []string{
		"watcher | events | most behind | mean latency | max latency | lost | reconnects | relists | remarks",
		"a-1 | 5,000 | 70 | 10ms | 100ms | 2 | 1,234 | 5 | unread, expired",
		"a-2 | 0 | 0 | – | – | 0 | 0 | 0 | ",
	}, tables["Worst watchers"])
	require.Equal(t, []string{
		"fault | kind | at | for | calls or watchers struck", "break | break | 1s | at once | 1", "slow | delay | 2s | 1.5s | 1,200",
	}, tables["Faults"])
	require.Len(t, tables["All metrics"], 1+len(scenario.Metrics))
	require.Subset(t, tables["All metrics"], []string{
		"writes/s | 1,000/s | writes that succeeded, over the whole load", "p99 | 12.3ms | the 99th percentile", "p90 | – | the 90th percentile",
	})
	require.Contains(t, page, `<div class="tiles">`+
		`<div class="tile"><b>1ms</b><span>median latency</span></div><div class="tile"><b>12.3ms</b><span>latency, 99th percentile</span></div>`+
		`<div class="tile"><b>1,000/s</b><span>writes</span></div><div class="tile"><b>50,000/s</b><span>deliveries</span></div>`+
		`<div class="tile bad"><b>2</b><span>events lost</span></div><div class="tile"><b>3.0 MiB</b><span>heap at most</span></div></div>`)
	r.Metrics["lost"] = 0
	require.Contains(t, htmlOf(t, r), `<div class="tile"><b>0</b><span>events lost`)
}

func TestPage_HasTheMachine(t *testing.T) {
	page := htmlOf(t, sample())
	for _, fact := range []string{">abc<", ">go1.26<", ">linux/amd64<", ">a CPU, 2 of 2 used<", ">3 before the run<"} {
		require.Contains(t, page, fact)
	}
}

func TestPage_MarksFaultsOnTheTimeAxis(t *testing.T) {
	for i, f := range figure.FindAllString(htmlOf(t, sample()), -1) {
		if i == 1 {
			require.NotContains(t, f, `class="mark"`, "it has no time axis")
			continue
		}
		require.Equal(t, 1, strings.Count(f, `class="mark"`))
		require.Equal(t, 1, strings.Count(f, `class="band"`))
		require.Contains(t, f, "<title>break, at 1s</title>")
	}
}

func TestPage_LoadsNothingAndRunsNothing(t *testing.T) {
	page := htmlOf(t, sample())
	for _, forbidden := range []string{"<script", "http://", "https://", "@import", "url("} {
		require.NotContains(t, page, forbidden)
	}
	require.Contains(t, page, "prefers-color-scheme: dark")
}

func TestPage_EscapesWhatPeopleWrote(t *testing.T) {
	r := sample()
	r.Scenario = `<b>"&`
	r.Faults[0].Name = "</title><script>alert(1)</script>"
	page := htmlOf(t, r)
	require.NotContains(t, page, "<storm>")
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "ZgotmplZ", "no context that the template distrusts")
	require.Contains(t, page, "A &lt;storm&gt; &amp; more")
	require.Contains(t, page, ">the fault late, at 4s, struck nothing</p>")
}

func TestPage_HasTheVerdict(t *testing.T) {
	r := sample()
	require.Contains(t, htmlOf(t, r), `class="badge broken"`)
	require.Contains(t, htmlOf(t, r), `<td class="left">a-1 got MODIFIED`)
	require.Contains(t, htmlOf(t, r), `<div class="tile bad"><b>2</b><span>events lost`)
	r.Broken = nil
	require.Contains(t, htmlOf(t, r), `class="badge failed"`)
	require.Contains(t, htmlOf(t, r), `1 of 2 failed`)
	r.Assertions = r.Assertions[1:]
	require.Contains(t, htmlOf(t, r), `class="badge passed"`)
	require.NotContains(t, htmlOf(t, r), `</span></h2>`, "nothing failed")
	require.Contains(t, htmlOf(t, r), "5s of load, 5.5s until watchers had their last event<")
	r.Interrupted, r.Assertions = true, nil
	require.Contains(t, htmlOf(t, r), `class="badge interrupted"`)
	require.Contains(t, htmlOf(t, r), "5s of load, then it was stopped: the figures are of what ran so far, and nothing is asserted")
}

// There are charts for missing and for equal values, too, and no position is NaN.
func TestCharts_OfUnusualValues(t *testing.T) {
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

// A report of another program may have any number. The axes stay finite.
func TestPage_IsFiniteWhateverTheNumbers(t *testing.T) {
	for _, huge := range []float64{1e30, 1e300, 1.5e308, math.MaxFloat64} {
		r := sample()
		last := &r.Samples[len(r.Samples)-1]
		last.At, last.WriteRate, last.DeliveryRate, last.Max, last.Others = huge, huge, huge, huge, huge
		require.Less(t, len(htmlOf(t, r)), 1<<20, "%g", huge)
	}
}
