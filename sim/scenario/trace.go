package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// traceFix is what to write instead of a trace that cannot be read.
const traceFix = "name a file, or " + ShippedTrace

// TraceFields are the fields of objects that come from a trace: dir is the key's
// directory ("." at the top), ext what follows the last dot of its name.
var TraceFields = []string{"dir", "ext"}

// openTrace opens a trace as it is stored. It is read more than once, so that it
// cannot be a pipe. Errors name it as the scenario does.
func (s *Scenario) openTrace(name string) (io.ReadCloser, error) {
	if name == ShippedTrace {
		return io.NopCloser(bytes.NewReader(testdata.GitHistorySmall)), nil
	}
	info, err := os.Stat(s.tracePath(name))
	switch {
	case err != nil:
		return nil, named(name, err)
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", shortened(name, maxFieldShown))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", shortened(name, maxFieldShown))
	}
	file, err := os.Open(s.tracePath(name))
	if err != nil {
		return nil, named(name, err)
	}
	return file, nil
}

// named is the error about a file under the name that the scenario has for it.
func named(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", shortened(name, maxFieldShown), at.Err)
	}
	return err
}

// copyTrace writes a trace, as it is stored, to w.
func (s *Scenario) copyTrace(w io.Writer, name string) error {
	r, err := s.openTrace(name)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return named(name, err)
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
