package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/interrupt"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
)

// Flags are the flags and arguments of a replay, for every program that has the command.
type Flags struct {
	File string `arg:"" help:"The trace: NDJSON, gzip or not, with lines such as {\"t\":1460920094,\"op\":\"put\",\"key\":\"main.go\",\"version\":\"2d04\"}."`

	Watchers  int           `default:"100" placeholder:"N" help:"How many watchers there are (${default})."`
	Via       load.Via      `default:"watch" placeholder:"WAY" help:"How watchers see the objects (${default}): watch; queue, a DeltaFIFO that fills an indexer; informer, as handlers of informers; or objectcache, by a reference to each object."`
	Backend   string        `default:"memory" placeholder:"STORAGE" help:"Where to store the objects: memory, bolt:FILE, or, if the program is watchmill-etcd, etcd:HOST:PORT[,HOST:PORT...][/PREFIX] (${default}). It must be new, unless --continue is given."`
	Speed     Speed         `default:"max" placeholder:"FACTOR" help:"How many times faster than it happened, such as 1000x, or max (${default})."`
	Policy    engine.Policy `default:"park" placeholder:"POLICY" help:"The policy for watchers that fall behind: park, terminate or conflate (${default})."`
	Slow      int           `default:"0" placeholder:"N" help:"How many of the watchers read at most 1,000 events per second (${default})."`
	Reconnect int           `default:"0" placeholder:"R" help:"How often each watcher disconnects, at random points, and resumes (${default})."`
	Select    string        `placeholder:"SELECTOR" help:"What the watchers select, such as dir=actor,ext=go: dir is the key's directory, ext what follows the last dot."`
	Window    int           `default:"0" placeholder:"N" help:"How many events the engine keeps to resume from; 0 for its default: about a million, or 131,072 with a --backend other than memory."`
	Seed      uint64        `default:"1" placeholder:"N" help:"The seed of the points where watchers disconnect (${default})."`
	State     help.Given    `placeholder:"FILE" help:"Write the final state of one watcher as tab-separated values."`
	KeepGoing bool          `help:"Skip and count bad lines, instead of refusing the trace."`

	Checkpoints help.Given `placeholder:"FILE" help:"Keep in this file where each watcher is, so that the replay can be continued; needs a --backend other than memory."`
	Continue    bool       `help:"Continue a replay that was interrupted or killed, as described above. Give the other flags again as they were."`
}

// Help returns the text that --help adds.
func (*Flags) Help() string {
	return `With --backend bolt:FILE and --checkpoints FILE a replay that was interrupted (Ctrl-C) or killed can be continued: give the same command with --continue. The writer goes on after the last line of the trace that is in storage, and each watcher from where it was. The end is that of a replay that was not interrupted: its state, its counts and its comparison. If there are neither storage nor checkpoints yet, --continue begins.

It refuses checkpoints of another storage, a torn file, and a trace that does not begin with what is in storage.

An interrupt or a SIGTERM ends the replay with a report of what ran so far. The exit status is

    0    if all is well
    1    if a watcher was lost, its state differs, or the replay failed,
         for example because the disk is full, or the file of --backend is
         damaged or in use
    2    for wrong usage, a bad trace, or another file that cannot be used
    130  after an interrupt or a SIGTERM`
}

// Options returns the options that the flags describe, for a program with these backends.
// The replay calls show with its progress periodically, at intervals of every.
func (f *Flags) Options(backends Backends, show func(load.ReplayProgress), every time.Duration) (Options, error) {
	open, err := backends.find(f.Backend)
	if err == nil {
		err = f.validatePaths()
	}
	return Options{
		File: f.File, KeepGoing: f.KeepGoing, Speed: float64(f.Speed),
		Watchers: f.Watchers, Via: f.Via, Select: f.Select, Policy: f.Policy, Slow: f.Slow,
		Reconnect: f.Reconnect, Seed: f.Seed, Window: f.Window, WritesState: f.State != "", Backend: f.Backend, Open: open,
		Checkpoints: string(f.Checkpoints), Continue: f.Continue,
		OnProgress: show, ProgressEvery: every,
	}, err
}

// validatePaths refuses a file to write that is also another file of the replay, since it
// would replace that, and one that cannot be made.
func (f *Flags) validatePaths() error {
	kind, place, _ := strings.Cut(f.Backend, ":")
	if kind == "bolt" {
		if err := refuseUnmade("--backend", place); err != nil {
			return err
		}
		if err := f.refuseMissing(place); err != nil {
			return err
		}
	}
	checkpoints, state := string(f.Checkpoints), string(f.State)
	trace, storage := otherFile{"the trace", f.File}, otherFile{"the storage", place}
	if err := refuseSame("--checkpoints", checkpoints, trace, storage, otherFile{"the file of --state", state}); err != nil {
		return err
	}
	if err := refuseSame("--state", state, trace, storage); err != nil {
		return err
	}
	if err := refuseUnwritable("--checkpoints", checkpoints); err != nil {
		return err
	}
	return refuseUnwritable("--state", state)
}

// refuseMissing refuses a file of storage that is not there though there are checkpoints to
// continue from: a new one would not be theirs, and would stay behind.
func (f *Flags) refuseMissing(place string) error {
	if !f.Continue {
		return nil
	}
	_, storage := os.Stat(place)
	_, saved := os.Stat(string(f.Checkpoints))
	if saved == nil && errors.Is(storage, fs.ErrNotExist) {
		return &OptionError{Option: "--backend", Problem: fmt.Sprintf("is %s, which is not there, but the replay that saved %s has written one; give that file, or begin anew without %s", place, f.Checkpoints, f.Checkpoints)}
	}
	return nil
}

// refuseUnmade refuses a path of a flag at which there can be no file.
func refuseUnmade(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &OptionError{Option: flag, Problem: fmt.Sprintf("is %s, which is a directory; give a file", path)}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return &OptionError{Option: flag, Problem: fmt.Sprintf("is %s, whose directory is not there; make it first", path)}
	}
	return nil
}

// refuseUnwritable refuses a path of a flag at which no file can be written, so that a replay
// does not run, and leave its storage, for nothing.
func refuseUnwritable(flag, path string) error {
	if path == "" {
		return nil
	}
	if err := refuseUnmade(flag, path); err != nil {
		return err
	}
	switch err := draft.Check(path); {
	case draft.OfDisk(err):
		return fmt.Errorf("%s is %s, which cannot be written: %w", flag, path, err)
	case err != nil:
		return &OptionError{Option: flag, Problem: fmt.Sprintf("is %s, which cannot be written: %v; give another file", path, err)}
	}
	return nil
}

// otherFile is a file of a replay that is not to be written, "" if there is none.
type otherFile struct{ what, path string }

// refuseSame refuses a path of a flag that is one of the other files.
func refuseSame(flag, path string, others ...otherFile) error {
	for _, other := range others {
		if path != "" && other.path != "" && draft.SameFile(path, other.path) {
			return &OptionError{Option: flag, Problem: fmt.Sprintf("is %s, which is %s; give another name", path, other.what)}
		}
	}
	return nil
}

// ErrFailed is the error of a replay that failed; its report says why.
var ErrFailed = errors.New("the run did not end well")

// Finish writes the final state to its file, and then the report to out, which ends the process if
// it is a closed pipe. It returns [ErrFailed] if the replay did not end well, and
// [context.Canceled] if it was interrupted, or ctx ends while the file is a pipe that no program
// reads.
func (f *Flags) Finish(ctx context.Context, out io.Writer, report *Report) error {
	if err := errors.Join(f.writeState(ctx, report), report.WriteText(out)); err != nil {
		return err
	}
	switch {
	case report.Interrupted:
		return context.Canceled
	case !report.OK():
		return ErrFailed
	}
	return nil
}

// writeState writes the final state to its file, unless one of them is missing: a replay that was
// interrupted has none.
func (f *Flags) writeState(ctx context.Context, report *Report) error {
	if f.State == "" || report.State == nil {
		return nil
	}
	out, err := interrupt.DoOrUndo(ctx, func() (*draft.Draft, error) { return draft.New(string(f.State)) }, (*draft.Draft).Discard)
	if err != nil {
		return err
	}
	defer out.Discard()
	if err := report.State.WriteTSV(out); err != nil {
		return err
	}
	return out.Publish()
}

// Speed is a factor of real time; zero is as fast as possible.
type Speed float64

// UnmarshalText reads "max", or a factor such as "1000x" or "0.5".
func (s *Speed) UnmarshalText(text []byte) error {
	if string(text) == "max" {
		*s = 0
		return nil
	}
	factor, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "x"), 64)
	if err != nil || !(factor > 0) || math.IsInf(factor, 1) {
		return fmt.Errorf("%q is not a speed: give a factor above 0, such as 1000x, or max", text)
	}
	*s = Speed(factor)
	return nil
}
