package report_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

// drawing is a chart as the page has it.
type drawing struct {
	x, y  []tick
	lines [][]point
	spots []span
	text  string
}

type (
	tick struct {
		at    float64
		label string
	}
	point struct{ x, y float64 }
	span  struct {
		from, width float64
		text        string
	}
)

var (
	yTicks = regexp.MustCompile(`<line class="grid" x1="66" x2="548" y1="([0-9.]+)" y2="([0-9.]+)"></line><text x="66" dx="-8" y="([0-9.]+)" dy="4" text-anchor="end">([^<]+)</text>`)
	xTicks = regexp.MustCompile(`<text x="([0-9.]+)" y="[0-9.]+" dy="17" text-anchor="middle">([^<]+)</text>`)
	lines  = regexp.MustCompile(`<path class="line s\d+" d="([^"]*)">`)
	points = regexp.MustCompile(`[ML]([0-9.]+),([0-9.]+)`)
	spots  = regexp.MustCompile(`<rect class="spot" x="([0-9.]+)" y="30" width="([0-9.]+)" height="176"><title>([^<]*)</title>`)
)

// drawings returns the charts of a page by their names.
func drawings(t *testing.T, r *report.Report) map[string]drawing {
	t.Helper()
	all := map[string]drawing{}
	for _, text := range figure.FindAllString(htmlOf(t, r), -1) {
		d := drawing{text: text}
		for _, m := range yTicks.FindAllStringSubmatch(text, -1) {
			require.Equal(t, []string{m[1], m[1]}, m[2:4], "the line and its label")
			d.y = append(d.y, tick{number(t, m[1]), m[4]})
		}
		for _, m := range xTicks.FindAllStringSubmatch(text, -1) {
			d.x = append(d.x, tick{number(t, m[1]), m[2]})
		}
		for _, m := range lines.FindAllStringSubmatch(text, -1) {
			var line []point
			for _, p := range points.FindAllStringSubmatch(m[1], -1) {
				line = append(line, point{number(t, p[1]), number(t, p[2])})
			}
			d.lines = append(d.lines, line)
		}
		for _, m := range spots.FindAllStringSubmatch(text, -1) {
			d.spots = append(d.spots, span{number(t, m[1]), number(t, m[2]), m[3]})
		}
		_, id, _ := strings.Cut(text, `id="`)
		id, _, _ = strings.Cut(id, `"`)
		all[id] = d
	}
	return all
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return n
}

// value returns the value of a tick's label: times in seconds, memory in MiB.
func (k tick) value(t *testing.T) float64 {
	t.Helper()
	if d, err := time.ParseDuration(k.label); err == nil && k.label != "0" {
		return d.Seconds()
	}
	return number(t, strings.NewReplacer(",", "", "k", "e3", " MiB", "", " B", "").Replace(k.label))
}

// position returns where a value belongs on an axis with these ticks, which agree with each other.
func position(t *testing.T, ticks []tick, scale func(float64) float64, value float64) float64 {
	t.Helper()
	require.Greater(t, len(ticks), 1)
	first, last := ticks[0], ticks[len(ticks)-1]
	low, high := scale(first.value(t)), scale(last.value(t))
	at := func(v float64) float64 { return first.at + (scale(v)-low)/(high-low)*(last.at-first.at) }
	for _, k := range ticks {
		require.InDelta(t, at(k.value(t)), k.at, 1e-6, k.label)
	}
	return at(value)
}

func linear(v float64) float64 { return v }

// Values, faults and columns are where the axes say.
func TestCharts_DrawValuesWhereTheAxesHaveThem(t *testing.T) {
	all := drawings(t, sample())
	at := []float64{0, 2.5, 5}
	for id, values := range map[string][]float64{
		"writes": {0, 1000, 900}, "deliveries": {0, 50_000, 40_000}, "lag": {0, 70, 0}, "stalled": {0, 3, 0},
		"heap": {1, 3, 2}, "others": {0, 3, 0}, "timers": {0, 2, 0}, "goroutines": {50, 60, 55},
	} {
		d := all[id]
		require.Len(t, d.lines, 1, id)
		require.Len(t, d.lines[0], 3, id)
		require.InDelta(t, 206, d.y[0].at, 1e-6, "%s: zero is at the bottom", id)
		require.InDelta(t, 30, d.y[len(d.y)-1].at, 1e-6, "%s: the last tick is at the top", id)
		for i, p := range d.lines[0] {
			require.InDelta(t, position(t, d.x, linear, at[i]), p.x, 0.051, id)
			require.InDelta(t, position(t, d.y, linear, values[i]), p.y, 0.051, id)
		}
		_, line, _ := strings.Cut(d.text, `class="line s1" d="`)
		line, _, _ = strings.Cut(line, `"`)
		require.NotContains(t, line, "l0,0", "%s: it has no gaps", id)
		require.Contains(t, d.text, `<path class="area" d="`+line+`L548.0,206.0L66.0,206.0Z">`, id)
		requireWithin(t, d.spots, d.lines[0])
		require.Contains(t, d.text, `<line class="mark" x1="162.4" x2="162.4" y1="30" y2="206">`)
		require.InDelta(t, 162.4, position(t, d.x, linear, 1), 1e-6)
		require.Regexp(t, `<rect class="band" x="258.8" y="30" width="144.[56]`, d.text)
		require.InDelta(t, 258.8+144.6, position(t, d.x, linear, 3.5), 1e-6)
		require.Contains(t, d.text, `viewBox="0 0 560 248"`)
	}

	require.Contains(t, all["lag"].text, `<h3>Lag</h3><div class="about">events that the watcher farthest behind was behind</div>`)
	latency := all["latency"]
	for i, values := range [][]float64{{0.1, 0.05}, {0.01, 0.02}, {0.001, 0.001}} {
		require.Len(t, latency.lines[i], 2, "there is no latency at 0s")
		for j, p := range latency.lines[i] {
			require.InDelta(t, position(t, latency.x, linear, at[j+1]), p.x, 0.051)
			require.InDelta(t, position(t, latency.y, math.Log10, values[j]), p.y, 0.051)
		}
	}
	require.Equal(t, "at 0s: none; fault: break", latency.spots[0].text)
	require.NotContains(t, latency.text, `class="area"`)
	require.Equal(t, 3, strings.Count(latency.text, `</svg>max</span>`)+strings.Count(latency.text, `</svg>p99</span>`)+strings.Count(latency.text, `</svg>p50</span>`))

	percentiles := all["percentiles"]
	room := func(p float64) float64 { return math.Log10(1 - p/100) }
	for i, p := range percentiles.lines[0][:4] {
		require.InDelta(t, position(t, percentiles.x, room, []float64{0, 50, 99, 99.9}[i]), p.x, 0.051)
		require.InDelta(t, position(t, percentiles.y, math.Log10, []float64{0.0001, 0.001, 0.0123, 0.05}[i]), p.y, 0.051)
	}
	require.InDelta(t, 548, percentiles.lines[0][4].x, 0.051, "the longest is at the end")
	requireWithin(t, percentiles.spots, percentiles.lines[0])
	require.NotContains(t, percentiles.text, `class="legend"`, "there is one line")

	faults := all["faults"].text
	require.Contains(t, faults, `viewBox="0 0 560 132"`)
	require.Regexp(t, `(?s)translate\(0 30\)"><text[^>]*>break<.*class="mark" x1="162.4".*translate\(0 60\)"><text[^>]*>slow<.*class="band" x="258.8" y="17" width="144`, faults)
	require.Contains(t, faults, `<line class="axis" x1="66" x2="548" y1="90" y2="90">`)
	require.Contains(t, faults, "<title>slow, at 2s for 1.5s</title>")
}

// requireWithin checks that the columns lie side by side across the plot, each around its point.
func requireWithin(t *testing.T, spots []span, points []point) {
	t.Helper()
	require.Len(t, spots, len(points))
	at := 66.0
	for i, s := range spots {
		require.InDelta(t, at, s.from, 1e-6)
		at += s.width
		require.GreaterOrEqual(t, points[i].x+0.051, s.from)
		require.LessOrEqual(t, points[i].x-0.051, at)
	}
	require.InDelta(t, 548, at, 1.01)
}

// A latency between two samples without any is a dot, and no line leads over them.
func TestCharts_ShowGaps(t *testing.T) {
	r := sample()
	r.Faults = nil
	r.Samples = nil
	for i, ms := range []float64{1, 0, 10, 0, 1, 10} {
		r.Samples = append(r.Samples, report.Sample{At: float64(i), P50: ms / 1000, P99: ms / 1000, Max: ms / 1000})
	}
	all := drawings(t, r)
	require.NotContains(t, all, "faults", "there are none")
	d := all["latency"]
	require.Contains(t, d.text, `<path class="line s3" d="M66.0,206.0l0,0M258.8,30.0l0,0M451.6,206.0l0,0L548.0,30.0">`)
	require.Equal(t, "at 3s: none", d.spots[3].text)
	require.Equal(t, "at 4s: max 1ms, p99 1ms, p50 1ms", d.spots[4].text)
}

// Stages have different percentiles, so that a column shows those of the first.
func TestCharts_ShowSeveralStages(t *testing.T) {
	r := sample()
	r.Latency = append(r.Latency, report.Stage{Name: "commit", Curve: []report.Point{{Percentile: 0, Seconds: 0.0002}, {Percentile: 90, Seconds: 0.002}}})
	d := drawings(t, r)["percentiles"]
	require.Len(t, d.lines, 2)
	require.Len(t, d.spots, 5)
	require.Equal(t, "0 %: end to end 100µs", d.spots[0].text)
	require.Contains(t, d.text, `class="legend"`)
	require.NotContains(t, d.text, `class="area"`)
	for i := range r.Samples {
		r.Samples[i].P50 = 0
	}
	require.NotContains(t, drawings(t, r)["latency"].text, "none at any time", "the longest are there")
}

// Watchers that follow the engine show no watch, of which the charts would say that none was behind
// at any time.
func TestCharts_LeaveOutHowFarWatchesAreBehindWithoutAny(t *testing.T) {
	r := sample()
	all := drawings(t, r)
	require.Contains(t, all, "lag")
	require.Contains(t, all, "stalled")
	for i := range r.Samples {
		r.Samples[i].Watches = 0
	}
	without := drawings(t, r)
	require.NotContains(t, without, "lag")
	require.NotContains(t, without, "stalled")
	require.Len(t, without, len(all)-2)
}

// A fault that happens several times has one lane, and is named once where the pointer is.
func TestCharts_ShowARepeatedFaultOnce(t *testing.T) {
	r := sample()
	r.Faults = []report.Fault{{Name: "break", At: 1, Until: 1}, {Name: "break", At: 1.2, Until: 1.2}}
	all := drawings(t, r)
	require.Equal(t, "at 0s: Lag 0; fault: break", all["lag"].spots[0].text)
	faults := all["faults"].text
	require.Contains(t, faults, `aria-label="Faults over time: 2 of break"`)
	require.Equal(t, 1, strings.Count(faults, `class="lane"`))
	require.Equal(t, 2, strings.Count(faults, `class="mark"`))
}

// Ticks have round values in few characters, and the last is not below the highest value.
func TestCharts_HaveRoundTicks(t *testing.T) {
	for value, want := range map[uint64]string{
		0: "0 1", 1: "0 1", 3: "0 1 2 3", 7: "0 2 4 6 8", 40: "0 10 20 30 40", 41: "0 20 40 60",
		9_000: "0 5,000 10k", 40_000: "0 10k 20k 30k 40k", 3_000_000: "0 1M 2M 3M", 2_000_000_000: "0 500M 1G 1.5G 2G",
		5_500_000: "0 2M 4M 6M", 800_000: "0 200k 400k 600k 800k",
	} {
		r := sample()
		r.Samples[1].Lag = value
		require.Equal(t, want, labels(drawings(t, r)["lag"].y))
	}
	for value, want := range map[uint64]string{
		0: "0 B, 1 B", 700: "0 B, 200 B, 400 B, 600 B, 800 B", 1024: "0 B, 512 B, 1 KiB", 5 << 20: "0 B, 2 MiB, 4 MiB, 6 MiB", 3 << 30: "0 B, 1 GiB, 2 GiB, 3 GiB",
	} {
		r := sample()
		for i := range r.Samples {
			r.Samples[i].Heap = value
		}
		require.Equal(t, want, strings.ReplaceAll(labels(drawings(t, r)["heap"].y), "B ", "B, "))
	}
	for end, want := range map[float64]string{5: "0 2 4", 4: "0 1 2 3 4", 0.3: "0 0.1 0.2 0.3", 20_000: "0 5000 10k 15k 20k", 86_400: "0 50k"} {
		r := sample()
		r.Samples[2].At = end
		require.Equal(t, want, labels(drawings(t, r)["writes"].x))
	}
	for last, want := range map[float64]string{0: "0 50 90", 90: "0 50 90", 99.99: "0 50 90 99 99.9 99.99", 99.999: "0 90 99 99.9 99.99 99.999"} {
		r := sample()
		r.Latency[0].Curve = []report.Point{{Percentile: last, Seconds: 1}, {Percentile: 100, Seconds: 2}}
		require.Equal(t, want, labels(drawings(t, r)["percentiles"].x))
	}
	for longest, want := range map[float64]string{0.001: "1ms 10ms", 0.0011: "1ms 10ms", 0.05: "1ms 10ms 100ms", 30: "1ms 10ms 100ms 1s 10s 1m40s"} {
		r := sample()
		r.Samples[1].Max, r.Samples[2].Max = longest, 0
		require.Equal(t, want, labels(drawings(t, r)["latency"].y))
	}
}

func labels(ticks []tick) string {
	var all []string
	for _, k := range ticks {
		all = append(all, k.label)
	}
	return strings.Join(all, " ")
}
