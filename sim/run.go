package sim

import (
	"context"

	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// Report is what happened in a run; see package report.
type Report = report.Report

// Progress is how far a run has come.
type Progress = load.Progress

// RunOptions qualify [Run]. The zero value runs the scenario as it is.
type RunOptions struct {
	// Resolve says in which size, for how long and with what seed.
	Resolve scenario.Options
	// Options say what to tell meanwhile.
	load.Options
}

// Run puts a scenario's load on an engine, in real time, and reports what
// happened. It returns when nothing of the run is left. If ctx is done it stops
// where it is and reports what ran so far, as interrupted, without an error.
//
// That an assertion failed, or an invariant is broken, is no error: ask
// Report.OK, or its Assertions and Broken.
//
// Errors: [scenario.Errors] if the scenario is invalid; a trace that cannot be
// read; an engine that does not come to serve or to close.
func Run(ctx context.Context, s *scenario.Scenario, opts RunOptions) (*Report, error) {
	plan, err := s.Resolve(opts.Resolve)
	if err != nil {
		return nil, err
	}
	return load.Run(ctx, plan, opts.Options)
}
