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

// ShippedTrace is the name of the trace that is compiled into the program: the
// history of a repository, 9,042 changes of files in eight years.
const ShippedTrace = "git-history"

// traceFix is the fix of an error about a trace that cannot be read.
const traceFix = "name a file, or " + ShippedTrace

// TraceFields are the fields of objects that come from a trace: dir is the directory
// of the key, "." at the top, and ext is the part of its name after the last dot.
var TraceFields = []string{"dir", "ext"}

// openTrace opens a trace as it is stored, compressed or not. Traces are read more than
// once, so they must be regular files. Errors contain the name that the scenario uses.
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
		return nil, fmt.Errorf("%s is not a regular file", shortened(name, maxFieldShown))
	}
	file, err := os.Open(s.tracePath(name))
	if err != nil {
		return nil, named(name, err)
	}
	return file, nil
}

// named replaces the path in an error by the name that the scenario uses.
func named(name string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", shortened(name, maxFieldShown), at.Err)
	}
	return err
}

// copyTrace copies a trace to w as it is stored.
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

// Changes ranges over the changes in a writer's trace. Errors: those of
// [trace.ReadFile].
func (p *Plan) Changes(w Writer) iter.Seq2[trace.Change, error] {
	if w.Trace == ShippedTrace {
		return trace.Read(ShippedTrace, bytes.NewReader(testdata.GitHistorySmall))
	}
	return trace.ReadFile(p.TraceFile(w))
}

// TraceFile returns the file of a writer's trace, "" if it has none.
func (p *Plan) TraceFile(w Writer) string {
	if w.Trace == "" || w.Trace == ShippedTrace {
		return ""
	}
	return p.tracePath(w.Trace)
}
