package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/inspect"
	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/report"
)

// quick is a scenario that is over at once.
const quick = `
duration: 100ms
objects: {count: 10}
writers: [{rate: 200}]
watchers: [{count: 3}]
`

func TestSimRun_WritesItsReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.json")
	out, errs, status := command(t.Context(), "sim", "run", "--seed=7", "--json", file, written(t, quick))
	require.Zero(t, status, out+errs)
	requireOnlyProgress(t, errs)
	require.Contains(t, out, "scenario   mine, seed 7")
	require.Contains(t, out, "holds      lost = 0")
	rep, err := readReport(file)
	require.NoError(t, err)
	require.Equal(t, uint64(7), rep.Seed)
	require.Positive(t, rep.Metrics["writes"])
}

func TestSimRun_ExitsWithOneIfAnAssertionFails(t *testing.T) {
	out, errs, status := command(t.Context(), "sim", "run", written(t, quick+"assert: [writes = 0]\n"))
	require.Equal(t, exitFailed, status, errs)
	require.Contains(t, out, "FAILED     writes = 0")
}

func TestSimRun_ExitsWithTwoForABadScenario(t *testing.T) {
	_, errs, status := command(t.Context(), "sim", "run", written(t, "watchers: 3"))
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "mine.yaml:1:11: watchers: is not a list")
}

func TestSimRun_ExitsWithThreeIfAnInvariantIsBroken(t *testing.T) {
	rep := &sim.Report{Broken: []string{"x"}, Interrupted: true, Assertions: []report.Assertion{{}}}
	require.Equal(t, exitBroken, complain(&bytes.Buffer{}, outcome(rep)))
}

func TestSimRun_TellsOfABrokenInvariantAlthoughItsReportCannotBeWritten(t *testing.T) {
	for _, broken := range []bool{true, false} {
		rep := &sim.Report{}
		if broken {
			rep.Broken = []string{"x"}
		}
		var errs bytes.Buffer
		status := complain(&errs, unwritten(&streams{stderr: &errs}, rep, errors.New("disk full")))
		require.Equal(t, map[bool]int{true: exitBroken, false: exitFailed}[broken], status)
		require.Equal(t, "watchmill: writing the report: disk full\n", errs.String())
	}
}

// A run that does not come to be must not cost the report of the one before.
func TestSimRun_LeavesTheReportThatThereIsIfItFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.json")
	require.NoError(t, os.WriteFile(file, []byte("before"), 0o600))
	bad := written(t, "writers: [{trace: bad.ndjson}]\nwatchers: [{}]\n")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(bad), "bad.ndjson"), []byte("rubbish\n"), 0o600))
	_, errs, status := command(t.Context(), "sim", "run", "--json", file, "--html", filepath.Join(dir, "run.html"), bad)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "bad.ndjson:1: ")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "before", string(content))
	require.Equal(t, []string{"run.json"}, filetest.Names(t, dir))
}

// One report in the place of the other, or of the scenario, would be the loss of that.
func TestSimRun_RefusesOneFileForTwoThings(t *testing.T) {
	scenario, dir := written(t, quick), t.TempDir()
	both, link := filepath.Join(dir, "both"), filepath.Join(dir, "link.json")
	require.NoError(t, os.Symlink(scenario, link))
	for problem, flags := range map[string][]string{
		"--html is " + both + ", which is the file of --json": {"--json", both, "--html", both},
		"--json is " + link + ", which is the scenario":       {"--json", link},
		"--html is " + scenario + ", which is the scenario":   {"--html", scenario},
	} {
		out, errs, status := command(t.Context(), append([]string{"sim", "run", scenario}, flags...)...)
		require.Equal(t, exitUsage, status)
		require.Empty(t, out)
		require.Equal(t, "watchmill: invalid configuration: "+problem+"; give another name\n", errs)
	}
	content, err := os.ReadFile(scenario)
	require.NoError(t, err)
	require.Equal(t, quick, string(content))
	require.Equal(t, []string{"link.json"}, filetest.Names(t, dir))
}

func TestSimRun_NamesTheFlagOfAReportThatCannotBeWritten(t *testing.T) {
	scenario, dir := written(t, quick), t.TempDir()
	for _, flag := range []string{"--json", "--html"} {
		out, errs, status := command(t.Context(), "sim", "run", flag, dir, scenario)
		require.Equal(t, exitUsage, status, errs)
		require.Empty(t, out)
		require.Contains(t, errs, "watchmill: cannot write the report: "+flag+" is "+dir+": ")
		require.Contains(t, errs, "is a directory; give another file\n")
	}
}

// An empty name comes of a variable of the shell that is not set: the report would be lost.
func TestSim_RefusesAnEmptyValue(t *testing.T) {
	for _, flag := range []string{"--json", "--html", "--inspect"} {
		out, errs, status := command(t.Context(), "sim", "run", flag+"=", written(t, quick))
		require.Equal(t, exitUsage, status, errs)
		require.Empty(t, out)
		require.Contains(t, errs, "watchmill: "+flag+": is empty; give a value, or leave the flag out\n")
	}
}

// A report in the place of a recorded history would be the loss of that.
func TestSimRun_RefusesAReportInPlaceOfATrace(t *testing.T) {
	mine := written(t, "duration: 100ms\nwriters: [{trace: history.ndjson}]\nwatchers: [{}]\n")
	history := filepath.Join(filepath.Dir(mine), "history.ndjson")
	const lines = `{"t":1,"op":"put","key":"a","version":"1"}` + "\n"
	require.NoError(t, os.WriteFile(history, []byte(lines), 0o600))
	for _, flag := range []string{"--json", "--html"} {
		out, errs, status := command(t.Context(), "sim", "run", mine, flag, history)
		require.Equal(t, exitUsage, status, errs)
		require.Empty(t, out)
		require.Equal(t, "watchmill: invalid configuration: "+flag+" is "+history+", which is a trace of the scenario; give another name\n", errs)
	}
	content, err := os.ReadFile(history)
	require.NoError(t, err)
	require.Equal(t, lines, string(content))
}

// interrupting is a stderr that interrupts a run, which has told the address of its page, after a time. A run that
// is interrupted before it has begun has no report.
type interrupting struct {
	bytes.Buffer
	after     time.Duration
	interrupt func()
}

func (i *interrupting) Write(p []byte) (int, error) {
	if pageAddress.Match(p) {
		time.AfterFunc(i.after, i.interrupt)
	}
	return i.Buffer.Write(p)
}

func TestSimRun_ReportsWhatRanSoFarIfInterrupted(t *testing.T) {
	scenario := written(t, "duration: 1h\nwriters: [{rate: 200}]\nwatchers: [{}]\n")
	interruptedAfter := func(d time.Duration) *report.Report {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		file := filepath.Join(t.TempDir(), "run.json")
		var out bytes.Buffer
		errs := &interrupting{after: d, interrupt: interrupt}
		status := run(ctx, []string{"sim", "run", "--inspect", "127.0.0.1:0", "--json", file, scenario}, &out, errs)
		require.Equal(t, exitInterrupted, status, errs.String())
		require.Contains(t, out.String(), "interrupted before the end")
		rep, err := readReport(file)
		require.NoError(t, err)
		require.True(t, rep.Interrupted)
		return rep
	}
	d := time.Second
	for interruptedAfter(d).Metrics["deliveries"] == 0 { // a busy machine has not come to the load
		d *= 2
		require.Less(t, d, 5*time.Minute, "nothing is ever delivered")
	}
}

func TestSimRun_SaysIfAReportCannotBeWritten(t *testing.T) {
	out, errs, status := command(t.Context(), "sim", "run", "--json", filepath.Join(t.TempDir(), "no", "dir"), written(t, quick))
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "no such file")
	require.Empty(t, out, "that is known before anything runs")
}

func TestSimRun_ShowsProgressOnATerminalAndWithoutOne(t *testing.T) {
	p := sim.Progress{Phase: load.Loading, Elapsed: time.Second, Duration: 2 * time.Second, WriteRate: 1234, DeliveryRate: 56789, Lag: 3, Stalled: 1, Watches: 5}
	var lines bytes.Buffer
	plain := newLoadProgress(&lines)
	plain.show(p)
	plain.end()
	require.Equal(t, "1s, 1,234 writes/s, 56,789 deliveries/s, 3 behind, 1 of 5 stalled\n", lines.String())
	p.Phase, p.Created = load.Preparing, 15000
	plain.show(p)
	p.Phase, p.Unsettled, p.Elapsed = load.Settling, 4, 2*time.Second
	plain.show(p)
	require.Contains(t, lines.String(), "preparing: 15,000 objects, 5 watches so far\n")
	require.Contains(t, lines.String(), "2s, the load is over: 4 have yet to read the rest, 3 events behind, 56,789 deliveries/s\n")

	p.Phase, p.Elapsed = load.Loading, time.Second
	var bar bytes.Buffer
	shown := loadBar(&bar)
	shown.show(p)
	shown.end()
	require.Contains(t, bar.String(), "1,234 writes/s, 56,789 deliveries/s")
	require.Contains(t, bar.String(), "49%")
}

func TestSimRun_WritesWhatSimCompareReads(t *testing.T) {
	dir := t.TempDir()
	before, after, page := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json"), filepath.Join(dir, "b.html")
	scenario := written(t, quick)
	for _, args := range [][]string{{"--json", before}, {"--json", after, "--seed=2", "--html", page}} {
		_, errs, status := command(t.Context(), append([]string{"sim", "run", scenario}, args...)...)
		require.Zero(t, status, errs)
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<svg")

	out, errs, status := command(t.Context(), "sim", "compare", before, after)
	require.Zero(t, status, errs)
	require.Contains(t, out, "the plans differ")
	require.Contains(t, out, "metric")
}

func TestInspect_ShowsTheHostThatARunIsOn(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host, Name: "run"})
	var stderr bytes.Buffer
	end, err := (&simRunCommand{Inspect: "127.0.0.1:0"}).inspect(&streams{stderr: &stderr})(host)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(pageAddress.FindString(stderr.String()) + "state")
	require.NoError(t, err)
	defer answer.Body.Close()
	var state inspect.State
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&state))
	require.Equal(t, "run", state.Engines[0].Name)
	end()
	require.NoError(t, topic.Close())
	require.NoError(t, host.Close())
}

var pageAddress = regexp.MustCompile(`http://\S+`)

// viewer is a stderr that opens the page whose address it is told, and reads the page's
// stream of events to its end.
type viewer struct {
	bytes.Buffer
	t    *testing.T
	seen chan int64 // bytes of the stream
}

func (v *viewer) Write(p []byte) (int, error) {
	if address := pageAddress.Find(p); address != nil {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Get(string(address) + "events")
		require.NoError(v.t, err)
		go func() {
			defer answer.Body.Close()
			n, _ := io.Copy(io.Discard, answer.Body) // ends with the server, by an error or not
			v.seen <- n
		}()
	}
	return v.Buffer.Write(p)
}

// A page that is open while the run ends is not a leak of the engine.
func TestSimRunInspect_AnOpenPageIsNoLeak(t *testing.T) {
	stderr, stdout := &viewer{t: t, seen: make(chan int64, 1)}, &bytes.Buffer{}
	status := run(t.Context(), []string{"sim", "run", "--inspect", "127.0.0.1:0", written(t, quick+"assert: [goroutines <= start]\n")}, stdout, stderr)
	require.Zero(t, status, stdout.String()+stderr.String())
	require.Positive(t, <-stderr.seen)
}

func TestSimRunInspect_ServesThePageWhileItRuns(t *testing.T) {
	out, errs, status := command(t.Context(), "sim", "run", "--inspect", "127.0.0.1:0", written(t, quick))
	require.Zero(t, status, out+errs)
	require.Regexp(t, `^inspect the run at http://127\.0\.0\.1:\d+/debug/watchmill/\n`, errs)
}

func TestSimRunInspect_NamesTheFlagOfAnAddressThatCannotBe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for address, c := range map[string]struct {
		status  int
		mention string
	}{
		"0.0.0.0:0":           {exitUsage, `--inspect is "0.0.0.0:0"; give a loopback address`},
		"nonsense":            {exitUsage, `--inspect is "nonsense"; give a loopback address with a port, such as 127.0.0.1:6061`},
		"127.0.0.1:99999":     {exitUsage, `--inspect is "127.0.0.1:99999": invalid port; give`},
		taken.Addr().String(): {exitFailed, "--inspect: listen tcp " + taken.Addr().String()},
	} {
		_, errs, status := command(t.Context(), "sim", "run", "--inspect", address, written(t, quick))
		require.Equal(t, c.status, status, errs)
		require.Contains(t, errs, c.mention)
	}
}
