package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/report"
)

// loadProgress is what watchmill sim run shows while it runs.
type loadProgress struct {
	every time.Duration
	show  func(sim.Progress)
	// end leaves the cursor where the report may begin.
	end func()
}

// How often the rates on a bar change: slowly enough to be read.
const loadBarEvery = 500 * time.Millisecond

// newLoadProgress shows a bar if w is a terminal, and plain lines otherwise.
func newLoadProgress(w io.Writer) loadProgress {
	if isTerminal(w) {
		return loadBar(w)
	}
	show := func(p sim.Progress) { fmt.Fprintf(w, "%s, %s\n", report.Seconds(p.Elapsed.Seconds()), doing(p)) }
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
		bar.Describe(doing(p))
		bar.ChangeMax64(p.Duration.Milliseconds() + 1)
		// A terminal that cannot be written to shows nothing; that is all.
		_ = bar.Set64(min(p.Elapsed, p.Duration).Milliseconds())
	}
	return loadProgress{every: loadBarEvery, show: show, end: func() { _ = bar.Clear() }}
}

// doing says what is going on at present.
func doing(p sim.Progress) string {
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
