package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/report"
)

// The time between two displays of progress: short enough for a smooth bar, and long
// enough for lines in a log.
const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second
)

// replayProgress shows how far a replay has come.
type replayProgress struct {
	every time.Duration
	show  func(load.ReplayProgress)
	// end moves the cursor to where the report can begin.
	end func()
}

// newReplayProgress shows a bar if w is a terminal, and plain lines otherwise.
func newReplayProgress(w io.Writer) replayProgress {
	if isTerminal(w) {
		return replayBar(w)
	}
	return replayLines(w)
}

// replayBar shows one bar for both parts of a run: first the changes that are written,
// then the watchers that have read them all. Writing ends long before reading, so the
// parts do not overlap.
func replayBar(w io.Writer) replayProgress {
	bar := progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false),
	)
	show := func(p load.ReplayProgress) {
		bar.Describe(fmt.Sprintf("writing, %s deliveries", report.Number(p.Delivered)))
		done, all := p.Written, p.Changes
		if p.Written == p.Changes {
			bar.Describe(fmt.Sprintf("reading, %s deliveries", report.Number(p.Delivered)))
			done, all = p.Finished, p.Watchers
		}
		bar.ChangeMax(all)
		// An error of the terminal only means that nothing is shown.
		_ = bar.Set(done)
	}
	return replayProgress{every: barEvery, show: show, end: func() { _ = bar.Clear() }}
}

// replayLines writes a line periodically, without control characters. A run that ends
// before the first line is due writes none.
func replayLines(w io.Writer) replayProgress {
	show := func(p load.ReplayProgress) {
		if p.Finished == p.Watchers {
			return // the report follows
		}
		fmt.Fprintf(w, "%s of %s changes written, %s of %s watchers done, %s deliveries\n",
			report.Number(p.Written), report.Number(p.Changes),
			report.Number(p.Finished), report.Number(p.Watchers), report.Number(p.Delivered))
	}
	return replayProgress{every: lineEvery, show: show, end: func() {}}
}

// loadProgress shows how far a run of watchmill sim run has come.
type loadProgress struct {
	every time.Duration
	show  func(sim.Progress)
	// end moves the cursor to where the report can begin.
	end func()
}

// loadBarEvery is the time between two changes of the rates on a bar, long enough to read
// them.
const loadBarEvery = 500 * time.Millisecond

// newLoadProgress shows a bar if w is a terminal, and plain lines otherwise.
func newLoadProgress(w io.Writer) loadProgress {
	if isTerminal(w) {
		return loadBar(w)
	}
	show := func(p sim.Progress) { fmt.Fprintf(w, "%s, %s\n", report.Seconds(p.Elapsed.Seconds()), phase(p)) }
	return loadProgress{every: lineEvery, show: show, end: func() {}}
}

// loadBar shows a bar for the time of the load.
func loadBar(w io.Writer) loadProgress {
	bar := progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(20),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
	)
	show := func(p sim.Progress) {
		bar.Describe(phase(p))
		bar.ChangeMax64(p.Duration.Milliseconds() + 1)
		// An error of the terminal only means that nothing is shown.
		_ = bar.Set64(min(p.Elapsed, p.Duration).Milliseconds())
	}
	return loadProgress{every: loadBarEvery, show: show, end: func() { _ = bar.Clear() }}
}

// phase describes what the run is doing.
func phase(p sim.Progress) string {
	switch p.Phase {
	case load.Preparing:
		return fmt.Sprintf("preparing: %s objects, %s watches so far", report.Number(p.Created), report.Number(p.Watches))
	case load.Settling:
		return fmt.Sprintf("the load is over: %s have yet to read the rest, %s events behind, %s deliveries/s",
			report.Number(p.Unsettled), report.Number(p.Lag), report.Number(p.DeliveryRate))
	}
	return fmt.Sprintf("%s writes/s, %s deliveries/s, %s behind, %s of %s stalled",
		report.Number(p.WriteRate), report.Number(p.DeliveryRate), report.Number(p.Lag),
		report.Number(p.Stalled), report.Number(p.Watches))
}

// screen returns the capabilities of w: plain text, unless it is a terminal.
func screen(w io.Writer) report.Terminal {
	if !isTerminal(w) {
		return report.Terminal{}
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd())) // terminals are files
	if err != nil {
		width = 80
	}
	return report.Terminal{Width: width, Color: colors(os.Getenv)}
}

// colors reports whether to use colours: not if NO_COLOR is not empty (no-color.org), nor
// on a dumb terminal.
func colors(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
