package replay

import (
	"context"
	"errors"
	"io"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/interrupt"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
)

// Report is the result of a replay.
type Report struct {
	load.Replayed
	// File is the name of the trace, and Changes is the number of its changes.
	File    string
	Changes int
	// Via is how the watchers see the objects, and Select their selector; empty if they see everything.
	Via    load.Via
	Select string
	// BadLines is how many lines were left out; the rest of a file that cannot be read
	// counts as one. Errors are the errors of the first [MaxErrors] of them.
	BadLines int
	Errors   []error
	// Checkpoints is the file from which the replay can be continued; empty for none.
	Checkpoints string
}

// MaxErrors is the maximum number of errors of bad lines in a report; BadLines counts all.
const MaxErrors = 10

// Run replays the trace and returns when every watcher has read all of it or is
// lost, and all resources of the run are released. If ctx is done it stops and reports
// what ran so far, as interrupted, without an error.
//
// Errors: [*OptionError] (matched by [ErrOptions]); a [*trace.Error], before
// anything has been written; and errors of the engine or its storage, which end the run.
func Run(ctx context.Context, opts Options) (*Report, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	report := &Report{File: opts.File, Via: opts.Via, Select: opts.Select, Checkpoints: opts.Checkpoints}
	changes, err := report.readUntil(ctx, opts.KeepGoing)
	if ctx.Err() != nil {
		report.Interrupted = true
		return report, nil
	}
	if err != nil {
		return nil, err
	}
	if err := opts.refuseUnwritableState(changes); err != nil {
		return nil, err
	}
	h := opts.history()
	h.Changes, report.Changes = changes, len(changes)
	if err := opts.useCheckpoints(&h); err != nil {
		return nil, err
	}
	replayed, err := load.Replay(ctx, h)
	if err != nil {
		return nil, opts.flagError(err)
	}
	report.Replayed = *replayed
	return report, nil
}

// refuseUnwritableState returns the error that writing the final state would have, so that a replay does
// not run, and leave its storage, for nothing. With a selector it would have to select, and does not.
func (o *Options) refuseUnwritableState(changes []trace.Change) error {
	if !o.WritesState || o.Select != "" {
		return nil
	}
	final := trace.State{}
	for _, c := range changes {
		final.Apply(c)
	}
	return final.WriteTSV(io.Discard)
}

// readUntil is read until ctx is done.
func (r *Report) readUntil(ctx context.Context, keepGoing bool) ([]trace.Change, error) {
	own := *r // which the reading may still change when ctx is done
	changes, err := interrupt.Do(ctx, func() ([]trace.Change, error) { return own.read(ctx, keepGoing) })
	if ctx.Err() == nil {
		*r = own
	}
	return changes, err
}

// read reads the trace into memory, so that reading does not slow the writer down and no
// part of a bad trace is written. It returns the first error; with keepGoing only if the
// trace has no good line.
func (r *Report) read(ctx context.Context, keepGoing bool) (changes []trace.Change, err error) {
	for change, err := range trace.ReadFile(r.File) {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
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
