package main

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

type storeDumpCommand struct {
	File  string     `arg:"" help:"The file."`
	Type  help.Given `placeholder:"NAME" help:"The type of the objects to print; not needed if there is only one."`
	State bool       `help:"Print the newest state, as tab-separated keys and values, in place of the changes."`
}

// Help returns the text that --help adds.
func (*storeDumpCommand) Help() string {
	return `Each change is a line:

    {"t":...,"op":"put","key":...,"version":...}

The version is the value: text or JSON as it is, other bytes as "base64:" and their encoding. For history that was compacted away, the first lines are the state that it led to. Emitted values are left out, since they are not state. A value of about a MiB or more gives a line that replay refuses: its lines have at most 1 MiB.

If the file is damaged, what can be read is printed, but nothing of one that is cut off: extend a copy of it to the size that the report of the damage gives, for example with truncate, and dump the copy. Each defect is reported on standard error, and the exit status is 1.`
}

// errManyTypes is the error of a dump without --type of a file with several types: a dump
// has one.
var errManyTypes = errors.New("the file holds more than one type: choose one with --type")

// errDump is the error of a dump whose output cannot be written.
var errDump = errors.New("cannot write the dump")

// Run prints the readable records.
func (c *storeDumpCommand) Run(to *streams) error {
	out := bufio.NewWriter(to.stdout)
	d := dump{command: c, out: out, state: trace.State{}}
	report, err := bolt.Dump(c.File, d.record)
	switch {
	case d.failed != nil:
		return d.failed
	case errors.Is(err, errManyTypes):
		return fmt.Errorf("%w: %w; there are %s", objectfile.ErrUnusable, err, typesOf(report))
	case err != nil:
		return objectfile.Usable(err)
	}
	if err := c.unknown(report); err != nil {
		return err
	}
	if c.State {
		err = d.state.WriteTSV(out)
	}
	if err := cmp.Or(err, out.Flush()); err != nil {
		return fmt.Errorf("%w: %w", errDump, err)
	}
	d.report(to.stderr, report)
	return damaged(report)
}

// unknown returns an error if the file, which is whole, does not have the type.
func (c *storeDumpCommand) unknown(report *bolt.Report) error {
	if _, known := report.Types[string(c.Type)]; known || c.Type == "" || len(report.Problems) > 0 {
		return nil
	}
	return fmt.Errorf("%w: %s has no type %q; there are %s", objectfile.ErrUnusable, c.File, c.Type, cmp.Or(typesOf(report), "none"))
}

// typesOf returns the names of the types in a file, as an error lists them.
func typesOf(report *bolt.Report) string {
	return strings.Join(slices.Sorted(maps.Keys(report.Types)), ", ")
}

// dump prints the records of one type.
type dump struct {
	command *storeDumpCommand
	out     io.Writer
	state   trace.State
	// name is the type that is printed; emitted counts the emitted values, which are left
	// out.
	name    string
	emitted int
	failed  error // why a line could not be written; nil if all were
}

// dumpLine is a line of a trace.
type dumpLine struct {
	T       json.Number `json:"t"`
	Op      string      `json:"op"`
	Key     string      `json:"key"`
	Version *string     `json:"version,omitempty"`
}

func (d *dump) record(r bolt.Record) error {
	switch {
	case d.command.Type != "" && r.Type != string(d.command.Type):
		return nil
	case d.name != "" && d.name != r.Type:
		return errManyTypes
	case r.Event == store.Emitted:
		d.emitted++
		return nil
	}
	d.name = r.Type
	change := trace.Change{Time: r.Written.UTC(), Op: trace.Put, Key: r.Key}
	if r.Event == store.Deleted {
		change.Op = trace.Delete
	} else {
		change.Version = versionOf(r)
	}
	if d.command.State {
		d.state.Apply(change)
		return nil
	}
	return d.print(change)
}

// print prints a change as a line of a trace.
func (d *dump) print(c trace.Change) error {
	seconds := strconv.FormatFloat(float64(c.Time.UnixMicro())/1e6, 'f', -1, 64)
	l := dumpLine{T: json.Number(seconds), Op: c.Op.String(), Key: c.Key}
	if c.Op == trace.Put {
		l.Version = &c.Version
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = fmt.Fprintf(d.out, "%s\n", text)
	}
	if err != nil {
		d.failed = fmt.Errorf("%w: %w", errDump, err)
	}
	return d.failed
}

// versionOf returns a value as text: the content of a JSON string, other text unchanged,
// and bytes in base64.
func versionOf(r bolt.Record) string {
	var text string
	switch {
	case r.Sealed || !utf8.Valid(r.Value):
		return "base64:" + base64.StdEncoding.EncodeToString(r.Value)
	case json.Unmarshal(r.Value, &text) == nil:
		return text
	}
	return string(r.Value)
}

// report prints how much was left out, and what is wrong with the file.
func (d *dump) report(w io.Writer, report *bolt.Report) {
	if d.emitted > 0 {
		fmt.Fprintf(w, "left out: %d emitted values, which are not state\n", d.emitted)
	}
	for _, problem := range report.Problems {
		fmt.Fprintln(w, "defect:", problem)
	}
	if report.Unlisted > 0 {
		fmt.Fprintf(w, "left out: %d more defects\n", report.Unlisted)
	}
}
