package replay

import (
	"errors"

	"github.com/watchmill/watchmill/sim/trace"
)

// MaxErrors is how many of the bad lines a report holds; all are counted.
const MaxErrors = 10

// input is a trace in memory, so that reading it does not slow the writer down
// and nothing of a bad one is applied.
type input struct {
	changes []trace.Change
	// bad is how many lines were wrong, or the rest of a file that cannot be
	// read; errs the first of what was wrong with them.
	bad  int
	errs []error
	// final is the state that the changes lead to.
	final trace.State
}

// load reads the trace. Unless it is told to keep going, the first error is the
// outcome. A trace without one good line is no trace in any case.
func load(path string, keepGoing bool) (*input, error) {
	in := &input{final: trace.State{}}
	for change, err := range trace.ReadFile(path) {
		switch {
		case err == nil:
			in.changes = append(in.changes, change)
			in.final.Apply(change)
		case keepGoing:
			in.reject(err)
		default:
			return nil, err
		}
	}
	if len(in.changes) == 0 {
		return nil, errors.Join(in.errs...)
	}
	return in, nil
}

func (in *input) reject(err error) {
	in.bad++
	if len(in.errs) < MaxErrors {
		in.errs = append(in.errs, err)
	}
}
