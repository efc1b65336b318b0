package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/report"
)

// How often progress is shown: a bar that moves smoothly, and lines that do not
// fill a log.
const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second
)

// progress is what a command shows while it runs.
type progress struct {
	every time.Duration
	show  func(load.ReplayProgress)
	// end leaves the cursor where the report may begin.
	end func()
}

// newProgress shows a bar if w is a terminal, and plain lines otherwise.
func newProgress(w io.Writer) progress {
	if isTerminal(w) {
		return barProgress(w)
	}
	return lineProgress(w)
}

// barProgress shows one bar for both parts of a run: the changes that were written,
// and then the watchers that have read them all. Writing ends long before reading
// does, so the parts do not overlap.
func barProgress(w io.Writer) progress {
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
		// A terminal that cannot be written to shows nothing; that is all.
		_ = bar.Set(done)
	}
	return progress{every: barEvery, show: show, end: func() { _ = bar.Clear() }}
}

// lineProgress writes a line now and then, without control characters. A run
// that is over before the first is due writes none.
func lineProgress(w io.Writer) progress {
	show := func(p load.ReplayProgress) {
		if p.Finished == p.Watchers {
			return // the report follows
		}
		fmt.Fprintf(w, "%s of %s changes written, %s of %s watchers done, %s deliveries\n",
			report.Number(p.Written), report.Number(p.Changes),
			report.Number(p.Finished), report.Number(p.Watchers), report.Number(p.Delivered))
	}
	return progress{every: lineEvery, show: show, end: func() {}}
}
