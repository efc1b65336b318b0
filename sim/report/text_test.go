package report_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// sample returns a report in which all fields are set.
func sample() *report.Report {
	return &report.Report{
		Schema: report.Schema, Scenario: "storm", About: "A <storm> & more", Small: true, Seed: 7, Plan: "0123456789abcdef",
		Build: report.Build{Revision: "abc", Go: "go1.26", OS: "linux", Arch: "amd64", CPU: "a CPU", CPUs: 2, Procs: 2},
		Load:  5, Took: 5.5, GoroutinesBefore: 3,
		Metrics: map[string]float64{
			"writes": 5000, "writes/s": 1000, "deliveries": 250_000, "p99": 0.0123, "lost": 2, "stalled": 0, "heap": 3 << 20, "goroutines": 3,
		},
		Assertions: []report.Assertion{{Text: "lost = 0", Value: 2}, {Text: "p99 < 50ms", Value: 0.0123, Holds: true}},
		Broken:     []string{"a-1 got MODIFIED at revision 3 after revision 3"},
		Errors:     []string{"engine: failed by the scenario"},
		Remarks:    []string{"the fault late, at 4s, struck nothing"},
		Latency: []report.Stage{{
			Name: "end to end", About: "from here to there", Count: 250_000, Mean: 0.002, P50: 0.001, P90: 0.005, P99: 0.0123, P999: 0.05, Max: 0.1,
			Curve: []report.Point{{Percentile: 0, Seconds: 0.0001}, {Percentile: 50, Seconds: 0.001}, {Percentile: 99, Seconds: 0.0123}, {Percentile: 99.9, Seconds: 0.05}, {Percentile: 100, Seconds: 0.1}},
		}},
		Groups: []report.Group{
			{Kind: "writers", Name: "w", Count: 2, Events: 5000, P50: 0.001, Failed: 17, Missed: 3},
			{Kind: "informers", Name: "i", Count: 1, Stale: 2, Unread: 2},
			{Kind: "watchers", Name: "a", Count: 50, Events: 250_000, Lost: 2, Unread: 1, Slow: true, Ends: map[string]int{"expired": 2, "panicked": 1}},
		},
		Worst:  []report.Watcher{{Name: "a-1", Delivered: 5000, Lost: 2, Unread: true, Lag: 70, Max: 0.1, Mean: 0.01, LastEnd: "expired"}},
		Faults: []report.Fault{{Name: "break", Kind: "break", At: 1, Until: 1, Struck: 1}, {Name: "slow", Kind: "delay", At: 2, Until: 3.5, Struck: 1200}},
		Samples: []report.Sample{
			{At: 0, Heap: 1 << 20, Goroutines: 50, Watches: 50},
			{At: 2.5, WriteRate: 1000, DeliveryRate: 50_000, P50: 0.001, P99: 0.01, Max: 0.1, Lag: 70, Stalled: 3, Heap: 3 << 20, Goroutines: 60, Watches: 50, Others: 0.03, TimerLate: 0.002},
			{At: 5, WriteRate: 900, DeliveryRate: 40_000, P50: 0.001, P99: 0.02, Max: 0.05, Heap: 2 << 20, Goroutines: 55, Watches: 50},
		},
	}
}

func TestText_SaysWhatMatters(t *testing.T) {
	var b strings.Builder
	require.NoError(t, sample().WriteText(&b))
	for _, line := range []string{
		"scenario   storm, small, seed 7, plan 0123456789ab\n",
		"took       5s of load, 5.5s until watchers had their last event\n",
		"writes     5,000, 1,000/s, 0 failed, 0 not made in time\n",
		"machine    3.0 MiB heap at most, 3 goroutines left of 3\n",
		"end to end        250,000       1ms       5ms    12.3ms      50ms     100ms\n",
		"17 failed, 3 not made in time\n",
		"  2 stale\n",
		"slow, 2 lost, 1 unread, 2 expired, 1 panicked\n",
		"unread, expired\n",
		"         2s  slow, for 1.5s: struck 1,200\n",
		"error      engine: failed by the scenario\n",
		"remark     the fault late, at 4s, struck nothing\n",
		"FAILED     lost = 0                 it is 2\n",
		"holds      p99 < 50ms               it is 12.3ms\n",
		"BROKEN     a-1 got MODIFIED at revision 3 after revision 3\n",
	} {
		require.Contains(t, b.String(), line)
	}
	require.NotContains(t, b.String(), "interrupted")
	require.NotContains(t, b.String(), "\nreads ")
	interrupted := sample()
	interrupted.Interrupted = true
	b.Reset()
	require.NoError(t, interrupted.WriteText(&b))
	require.Contains(t, b.String(), "interrupted before the end")
	require.Contains(t, b.String(), "took       5s of load, then it was stopped\n")
	for _, metric := range []string{"unread", "stale"} {
		unread := sample()
		unread.Metrics[metric] = 1
		b.Reset()
		require.NoError(t, unread.WriteText(&b))
		require.Contains(t, b.String(), "took       5s of load, 5.5s until watchers had their last event, and not everything was read\n")
	}
}

func TestText_HasATableOfEachPart(t *testing.T) {
	r := sample()
	r.Metrics["deliveries/s"], r.Metrics["conflated"], r.Metrics["reads"], r.Metrics["read-errors"] = 50_000, 7, 1200, 3
	r.Latency = append(r.Latency, report.Stage{Name: "never", About: "of nothing"})
	r.Groups[0].Measured, r.Groups[0].P99, r.Groups[0].Max = 1, 0.002, 0.003
	r.Groups[2].Reconnects, r.Groups[2].Relists = 5, 6
	r.Worst = append(r.Worst, report.Watcher{Name: "a-2", Follows: true, LastEnd: "panicked"})
	r.Assertions = append(r.Assertions, report.Assertion{Text: "of another program", Value: 5})
	var b strings.Builder
	require.NoError(t, r.WriteText(&b))
	require.Equal(t, `scenario   storm, small, seed 7, plan 0123456789ab
took       5s of load, 5.5s until watchers had their last event
writes     5,000, 1,000/s, 0 failed, 0 not made in time
deliveries 250,000, 50,000/s, 7 stand for several events
reads      1,200, 3 failed, 0 not made in time
watchers   0 stalled at most, – events behind at most, 0 reconnects, 0 relists
machine    3.0 MiB heap at most, 3 goroutines left of 3
           other programs used 0 % of the processors, 3 % at 2.5s; a timer was 2ms late at most

latency            events       p50       p90       p99     p99.9       max
end to end        250,000       1ms       5ms    12.3ms      50ms     100ms

group                    count       events       p50       p99       max
writers w                    2        5,000       1ms       2ms       3ms  17 failed, 3 not made in time
informers i                  1            0         –         –         –  2 stale
watchers a                  50      250,000         –         –         –  slow, 2 lost, 1 unread, 5 reconnects, 6 relists, 2 expired, 1 panicked

worst watchers               events  behind      mean       max    lost
a-1                           5,000      70      10ms     100ms       2  unread, expired
a-2                               0       –         –         –       0  panicked

faults
         1s  break: struck 1
         2s  slow, for 1.5s: struck 1,200
error      engine: failed by the scenario
remark     the fault late, at 4s, struck nothing

FAILED     lost = 0                 it is 2
holds      p99 < 50ms               it is 12.3ms
FAILED     of another program       it is 5
BROKEN     a-1 got MODIFIED at revision 3 after revision 3
`, b.String())

	r.Worst, r.Faults, r.Errors, r.Remarks, r.Assertions, r.Broken, r.Groups = nil, nil, nil, nil, nil, nil, r.Groups[:1]
	r.Groups[0].Failed, r.Groups[0].Missed = 0, 0
	b.Reset()
	require.NoError(t, r.WriteText(&b))
	_, end, _ := strings.Cut(b.String(), "\ngroup")
	require.Equal(t, "                    count       events       p50       p99       max\nwriters w                    2        5,000       1ms       2ms       3ms\n\n", end)
}

// Took is that of watchers: informers and object caches may have read for longer.
func TestText_DoesNotSayWhenInformersHadReadAll(t *testing.T) {
	r := sample()
	r.Groups = r.Groups[:2]
	var b strings.Builder
	require.NoError(t, r.WriteText(&b))
	require.Contains(t, b.String(), "\ntook       5s of load\n")
	r.Metrics["stale"] = 2
	b.Reset()
	require.NoError(t, r.WriteText(&b))
	require.Contains(t, b.String(), "\ntook       5s of load, and not everything was read\n")
}

func TestReport_SaysThatItCannotBeWritten(t *testing.T) {
	full := errors.New("no space left on device")
	c, err := report.Compare(side(1), side(2))
	require.NoError(t, err)
	for name, write := range map[string]func(io.Writer) error{
		"text": sample().WriteText, "page": sample().WriteHTML, "JSON": sample().WriteJSON, "comparison": c.WriteText,
	} {
		require.ErrorIs(t, write(fails{full}), full, name)
	}
}

// fails is a writer whose disk is full.
type fails struct{ err error }

func (f fails) Write([]byte) (int, error) { return 0, f.err }

// A failed assertion about speed says when the machine was disturbed; one about
// something else does not, nor does one that holds.
func TestText_SaysThatTheMachineWasDisturbed(t *testing.T) {
	slow := sample()
	slow.Assertions = []report.Assertion{{Text: "p99 < 1ms", Value: 0.0123}, {Text: "p99 < 50ms", Value: 0.0123, Holds: true}, {Text: "lost = 0", Value: 2}}
	written := func() string {
		var b strings.Builder
		require.NoError(t, slow.WriteText(&b))
		return b.String()
	}
	require.False(t, slow.Disturbed())
	require.NotContains(t, written(), "disturbed")
	require.Contains(t, written(), "           other programs used 0 % of the processors, 3 % at 2.5s; a timer was 2ms late at most\n")
	slow.Samples[1].Others, slow.Samples[2].TimerLate = 0.6, 0.0123
	require.True(t, slow.Disturbed())
	require.Equal(t, 1, strings.Count(written(), "disturbed"))
	require.Contains(t, written(), "FAILED     p99 < 1ms                it is 12.3ms\n           the machine was disturbed, which may be why: other programs used 0 % of the processors, 60 % at 2.5s\n")
	require.Contains(t, written(), "; a timer was 12.3ms late at most\n")
	require.False(t, slow.OK(), "disturbed or not, it failed")
	slow.Samples, slow.Disturbance.Others = nil, 0.07
	require.Contains(t, written(), "the machine was disturbed, which may be why: other programs used 7 % of the processors\n")
	var page strings.Builder
	require.NoError(t, slow.WriteHTML(&page))
	require.Equal(t, 1, strings.Count(page.String(), "the machine was disturbed"))
	slow.Assertions = []report.Assertion{{Text: "unwritten = 0", Value: 3}, {Text: "missed-reads < 9", Value: 10}, {Text: "writes/s > 9", Value: 8}}
	require.Equal(t, 3, strings.Count(written(), "the machine was disturbed"))
	slow.Assertions = []report.Assertion{{Text: "p99 < 1ms", Unmeasured: true}}
	require.NotContains(t, written(), "the machine was disturbed")
	require.Contains(t, written(), "FAILED     p99 < 1ms                it is not known: nothing was measured\n")
}

// An assertion that misses its limit by little does not read as if it held.
func TestText_ShowsByWhatAnAssertionFails(t *testing.T) {
	for want, a := range map[string]report.Assertion{
		"199.97/s": {Text: "writes/s >= 200", Value: 199.97}, "200/s": {Text: "writes/s >= 200", Value: 200.4, Holds: true}, "100/s": {Text: "writes/s >= 200", Value: 100},
		"0.050004s": {Text: "p99 < 50ms", Value: 0.050004}, "1048577 B": {Text: "heap <= 1MiB", Value: 1<<20 + 1}, "1": {Text: "lag < 1", Value: 1},
	} {
		require.Equal(t, want, a.Shown(), a.Text)
	}
}

// Zero would be the best latency there is.
func TestReport_ShowsNoLatencyOfWhatWasNotMeasured(t *testing.T) {
	r := sample()
	delete(r.Metrics, "p99")
	r.Latency, r.Worst, r.Faults, r.Assertions = nil, nil, nil, nil
	for i := range r.Groups {
		r.Groups[i].Measured, r.Groups[i].P50 = 0, 0
	}
	for _, text := range []string{terminalText(t, r, report.Terminal{}), htmlOf(t, r)} {
		require.NotRegexp(t, `(>|  )0s`, text)
		require.Contains(t, text, "–")
	}
	require.Contains(t, terminalText(t, r, report.Terminal{}), "0 stalled at most, – events behind at most")
	r.Worst = []report.Watcher{{Name: "a-1", Follows: true}}
	require.Regexp(t, "\na-1 +0 +– ", terminalText(t, r, report.Terminal{}))
	require.Contains(t, htmlOf(t, r), "<td>a-1</td><td>0</td><td>–</td>")
	_, text := compare(t, []*report.Report{r, r, r, r}, side(1, 2, 3, 4))
	require.Contains(t, text, "note       only some runs have, so that it is not compared: p99\n")
	require.NotRegexp(t, "(?m)^p99 ", text)
}

// Reads are mentioned even if not one was made in time.
func TestText_SaysThatReadsWereMissed(t *testing.T) {
	var b strings.Builder
	missed := sample()
	missed.Metrics["missed-reads"] = 1234
	require.NoError(t, missed.WriteText(&b))
	require.Contains(t, b.String(), "reads      0, 0 failed, 1,234 not made in time\n")
}

func TestOK_IsOnlyWhatRanToItsEndAndHolds(t *testing.T) {
	fine := &report.Report{Assertions: []report.Assertion{{Holds: true}}}
	require.True(t, fine.OK())
	for _, bad := range []*report.Report{
		{Interrupted: true}, {Broken: []string{"x"}}, {Assertions: []report.Assertion{{Holds: true}, {}}},
	} {
		require.False(t, bad.OK())
	}
}

func TestText_PrintsValuesInTheirUnits(t *testing.T) {
	for want, got := range map[string]string{
		"1,234,567": report.Number(1234567), "12,345": report.Number(uint64(12345)), "-12": report.Number(-12.4), "999": report.Number(999), "0": report.Number(0),
		"12.3ms": report.Seconds(0.01234), "1.23ms": report.Seconds(0.001234), "123ms": report.Seconds(0.1234), "250ns": report.Seconds(2.5e-7), "1.5s": report.Seconds(1.5), "450µs": report.Seconds(0.00045), "0s": report.Seconds(0), "2m30s": report.Seconds(150),
		"2.78e+08h": report.Seconds(1e12), "-2.78e+06h": report.Seconds(-1e10),
		"512 B": report.Memory(512), "1.5 KiB": report.Memory(1536), "2.0 GiB": report.Memory(2 << 30),
		"5/s": report.Value(scenario.PerSecond, 5), "5ms": report.Value(scenario.Time, 0.005), "1.0 MiB": report.Value(scenario.Bytes, 1<<20), "7": report.Value(scenario.Count, 7),
	} {
		require.Equal(t, want, got)
	}
}

func TestThisBuild_KnowsItself(t *testing.T) {
	b := report.ThisBuild()
	require.NotEmpty(t, b.Go)
	require.Positive(t, b.CPUs)
	require.Positive(t, b.Procs)
}

// Names and errors come from a file, and neither begin lines of their own nor control the
// terminal.
func TestText_HasNoLinesOfNames(t *testing.T) {
	r := sample()
	const evil = "x\nholds      lost = 0 it is 0\x1b[2J\u2028\xff"
	var lines int
	for _, name := range []string{"x", evil} {
		r.Scenario, r.Errors[0], r.Broken[0], r.Remarks[0] = name, name, name, name
		r.Assertions[0].Text, r.Faults[0].Name = name, name
		r.Groups[1].Name, r.Worst[0].Name, r.Worst[0].LastEnd, r.Latency[0].Name = name, name, name, name
		r.Build.Revision, r.Build.CPU = name, name
		other := *r
		other.Scenario = name + name
		for _, width := range []int{0, 200} {
			text := terminalText(t, r, report.Terminal{Width: width}) + comparison(t, r, sample()) + comparison(t, &other, r)
			require.NotContains(t, text, "\x1b")
			require.NotContains(t, text, "\nholds      lost")
			require.True(t, utf8.ValidString(text))
			if name == evil {
				require.Equal(t, lines, strings.Count(text, "\n"), text)
				require.Contains(t, text, "x holds      lost = 0 it is 0\ufffd[2J\ufffd\ufffd")
			}
			lines = strings.Count(text, "\n")
		}
	}
}

func comparison(t *testing.T, before, after *report.Report) string {
	t.Helper()
	c, err := report.Compare([]*report.Report{before}, []*report.Report{after})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, c.WriteText(&b))
	return b.String()
}
