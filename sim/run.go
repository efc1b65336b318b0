package sim

import (
	"context"

	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// Report is what happened in a run; see package report.
type Report = report.Report

// Progress is how far a run has come; see package load.
type Progress = load.Progress

// RunOptions are the options of [Run]. The zero value runs the scenario as it is.
type RunOptions struct {
	// Resolve sets the size, the duration and the seed.
	Resolve scenario.Options
	// Options are hooks for observing the run.
	load.Options
}

// Run puts a scenario's load on an engine, in real time, and reports what
// happened. It blocks until the load has ended, for the scenario's duration and at most
// its settling time, and all resources of the run are released. Only ctx bounds how long an
// engine takes to be ready, with the objects and the watches, and to return from calls that
// have begun. If ctx is done Run stops and reports what ran so far, as interrupted, without an error.
//
// A failed assertion or a broken invariant is not an error: see Report.OK, or the
// report's Assertions and Broken.
//
// Errors: [scenario.Errors] if the scenario is invalid; a trace that cannot be
// read; an engine that does not become ready or does not close.
func Run(ctx context.Context, s *scenario.Scenario, opts RunOptions) (*Report, error) {
	plan, err := s.Resolve(opts.Resolve)
	if err != nil {
		return nil, err
	}
	return load.Run(ctx, plan, opts.Options)
}
