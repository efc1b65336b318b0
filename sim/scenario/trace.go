package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/testdata"
)

// ShippedTrace is the name of the trace that is part of the program: the history
// of a repository, 9,042 changes of files in eight years.
const ShippedTrace = "git-history"

// TraceFields are the fields of objects that come from a trace: dir is the key's
// directory ("." at the top), ext what follows the last dot of its name.
var TraceFields = []string{"dir", "ext"}

// findTrace reports why a trace cannot be read, if so.
func (s *Scenario) findTrace(name string) error {
	if name == ShippedTrace {
		return nil
	}
	info, err := os.Stat(s.tracePath(name))
	var unreadable *fs.PathError
	switch {
	case errors.As(err, &unreadable):
		return fmt.Errorf("%s: %w", name, unreadable.Err)
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", name)
	}
	return err
}

func (s *Scenario) tracePath(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.dir, name)
}

// Changes ranges over the trace of a writer. Errors are those of
// [trace.ReadFile].
func (p *Plan) Changes(w Writer) iter.Seq2[trace.Change, error] {
	if w.Trace == ShippedTrace {
		return trace.Read(ShippedTrace, bytes.NewReader(testdata.GitHistorySmall))
	}
	return trace.ReadFile(p.tracePath(w.Trace))
}
