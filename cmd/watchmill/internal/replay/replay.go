package replay

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
)

// Report is what happened in a run.
type Report struct {
	load.Replayed
	// File is the trace, and Changes how many it has.
	File    string
	Changes int
	// BadLines is how many lines were left out, the rest of a file that cannot be
	// read counting as one; Errors is what was wrong with the first [MaxErrors] of
	// them.
	BadLines int
	Errors   []error
	// Checkpoints is the file from which the replay can be continued; empty for none.
	Checkpoints string
}

// MaxErrors is how many of the bad lines a report holds; all are counted.
const MaxErrors = 10

// Run replays the trace and returns when every watcher has read all of it or is
// lost, and nothing of the run is left. If ctx is done it stops where it is and
// reports what ran so far, as interrupted, without an error.
//
// Errors: [*OptionError] (matched by [ErrOptions]); a [*trace.Error], before
// anything has been written; what the engine met, which then ended the run.
func Run(ctx context.Context, opts Options) (*Report, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	report := &Report{File: opts.File, Checkpoints: opts.Checkpoints}
	changes, err := report.read(opts.KeepGoing)
	if err != nil {
		return nil, err
	}
	h := opts.history()
	h.Changes, report.Changes = changes, len(changes)
	if err := opts.keep(&h); err != nil {
		return nil, err
	}
	replayed, err := load.Replay(ctx, h)
	if err != nil {
		return nil, opts.explain(&h, err)
	}
	report.Replayed = *replayed
	return report, nil
}

// read reads the trace into memory, so that reading does not slow the writer down
// and nothing of a bad one is applied. Unless it is told to keep going, the first
// error is the outcome. A trace without one good line is no trace in any case.
func (r *Report) read(keepGoing bool) (changes []trace.Change, err error) {
	for change, err := range trace.ReadFile(r.File) {
		switch {
		case err == nil:
			changes = append(changes, change)
		case keepGoing:
			r.reject(err)
		default:
			return nil, err
		}
	}
	if len(changes) == 0 {
		return nil, errors.Join(r.Errors...)
	}
	return changes, nil
}

func (r *Report) reject(err error) {
	r.BadLines++
	if len(r.Errors) < MaxErrors {
		r.Errors = append(r.Errors, err)
	}
}
